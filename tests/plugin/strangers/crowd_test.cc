// Ten thousand silent connections, and as many as there are descriptors: they make room for peers, and the process
// stays small.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr int kCrowd = 10000;
// The descriptors of the plugin's process: a quarter of them may be strangers.
constexpr rlim_t kHostLimit = 1024;
constexpr size_t kGreetings = kHostLimit / 4;

void SetLimit(rlim_t limit) {
  const rlimit both{limit, limit};
  TCPX_REQUIRE(setrlimit(RLIMIT_NOFILE, &both) == 0);
}

// Descriptors that this process may have, up to `wanted`.
int RaiseLimitTo(int wanted) {
  rlimit limit;
  TCPX_REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = std::min(limit.rlim_max, static_cast<rlim_t>(wanted));
  TCPX_REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  return static_cast<int>(limit.rlim_cur);
}

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t total = 0;
  size_t resident = 0;
  statm >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

class CrowdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mode{.lanes = 2}.Apply();
    setenv("TCPX_HELLO_TIMEOUT", "600", 1);  // Far beyond the test: no deadline does the work.
  }
};

// The plugin, with so many descriptors. Peers come while the crowd grows, while it is there, and once it has gone.
void Besieged(Control& peer, rlim_t limit, size_t descriptors_more) {
  SetLimit(limit);
  Rank rank;
  char handle[kHandleBytesMax] = {};
  void* const listen = rank.Listen(handle);
  const size_t before = OpenDescriptors().size();
  const size_t resident = ResidentBytes();
  peer.Send(handle, sizeof(handle));
  peer.Await('h');
  rank.Close(rank.ConnectToSelf());
  peer.Await('c');
  rank.Close(rank.ConnectToSelf());
  TCPX_REQUIRE(OpenDescriptors().size() <= before + descriptors_more, OpenDescriptors().size(), " of ", before);
  TCPX_REQUIRE(ResidentBytes() < resident + (size_t{64} << 20), ResidentBytes(), " bytes of ", resident);
  peer.Tell('g');
  peer.Await('l');
  rank.Close(rank.ConnectToSelf());
  rank.CloseListen(listen);
  rank.Finalize();
  TCPX_REQUIRE(CountInLog("had to make room") == 2, "one line, and one with the number; ", LogText());
}

void Besieges(Control& peer, int crowd) {
  char handle[kHandleBytesMax];
  peer.Receive(handle, sizeof(handle));
  std::vector<Visitor> visitors;
  for (int i = 0; i < crowd; ++i) {
    visitors.emplace_back(handle);
    if (i == crowd / 2) peer.Tell('h');
    // Not faster than they are accepted: what finds the backlog full comes again after seconds.
    const int pace = 4 * static_cast<int>(kGreetings);
    while (i >= pace && !visitors[static_cast<size_t>(i - pace)].Ended()) usleep(100);
  }
  peer.Tell('c');
  peer.Await('g');
  visitors.clear();
  peer.Tell('l');
}

TEST_F(CrowdTest, TenThousandSilentOnesMakeRoomForPeers) {
  const auto host = [](Control& peer) {
    // In addition to the crowd: the ends of its own connection that the reactor has not closed yet.
    Besieged(peer, kHostLimit, kGreetings + 64);
    TCPX_REQUIRE(WarningCount() == 0, LogText());
  };
  const auto crowd = [](Control& peer) {
    const int most = RaiseLimitTo(kCrowd + 64) - 64;
    if (most < kCrowd) std::fprintf(stderr, "only %d strangers: the limit of open files is lower\n", most);
    Besieges(peer, std::min(kCrowd, most));
  };
  EXPECT_EQ("", RunTogether(host, crowd));
}

// The application holds nearly all that there is: the crowd leaves it, and peers, the rest.
TEST_F(CrowdTest, TheLastDescriptorsAreNotForThem) {
  const auto host = [](Control& peer) {
    for (int i = 0; i < 180; ++i) TCPX_REQUIRE(dup(0) >= 0);
    Besieged(peer, 256, 56);
    TCPX_REQUIRE(WarningCount() == 0, LogText());
  };
  EXPECT_EQ("", RunTogether(host, [](Control& peer) { Besieges(peer, 300); }));
}

// The application takes all of them while strangers are there: the next peer gets one of theirs.
TEST_F(CrowdTest, WithNoDescriptorLeftTheyMakeRoom) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              char handle[kHandleBytesMax] = {};
              rank.Listen(handle);
              const size_t before = OpenDescriptors().size();
              std::vector<Visitor> crowd;
              for (int i = 0; i < 5; ++i) crowd.emplace_back(handle);
              while (OpenDescriptors().size() < before + 10) usleep(1000);
              const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
              SetLimit(512);
              while (dup(0) >= 0) continue;
              Visitor late(handle, peer);
              Hello hello;
              hello.lanes = 2;
              TCPX_REQUIRE(StatusFor(&late, HelloFor(handle, hello)) == HelloStatus::kAccepted);
              TCPX_REQUIRE(StatusFor(&crowd[0], "") == HelloStatus::kBusy && crowd[0].HearToTheEnd().empty());
              TCPX_REQUIRE(CountInLog("ulimit") == 1, LogText());
              QuickExit();  // Exit handlers of sanitizers open files.
            }));
}

// Who came first from elsewhere keeps its place, however many come from one source.
TEST_F(CrowdTest, TheFullestSourceMakesRoom) {
  const auto host = [](Control& peer) { Besieged(peer, kHostLimit, kGreetings + 64); };
  const auto crowd = [](Control& peer) {
    char handle[kHandleBytesMax];
    peer.Receive(handle, sizeof(handle));
    Visitor early(handle, "127.0.0.3");
    Hello hello;
    hello.lanes = 2;
    const std::string bytes = HelloFor(handle, hello);
    TCPX_REQUIRE(early.Say(bytes.substr(0, 10)));
    std::vector<Visitor> visitors;
    for (size_t i = 0; i < 2 * kGreetings; ++i) visitors.emplace_back(handle, "127.0.0.2");
    while (!visitors[0].Ended()) usleep(1000);
    TCPX_REQUIRE(StatusFor(&early, bytes.substr(10)) == HelloStatus::kAccepted);
    peer.Tell('h');
    peer.Tell('c');
    peer.Await('g');
    visitors.clear();
    early.Leave();
    peer.Tell('l');
  };
  EXPECT_EQ("", RunTogether(host, crowd));
}

}  // namespace
}  // namespace tcpx
