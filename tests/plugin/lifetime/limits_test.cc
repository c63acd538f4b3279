// A thousand ranks need many descriptors: the soft limit of most distributions (1024) is far too low and is raised; at
// the hard one there is an error that says what to raise, no crash, and no thread that spins.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/deadline.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/seed.h"
#include "tests/support/stream.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

void SetLimits(rlim_t soft, rlim_t hard) {
  const rlimit limit{soft, hard};
  TCPX_REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

// The limit below which `more` descriptors can still be opened.
rlim_t RoomFor(int more) {
  const int lowest = dup(0);
  close(lowest);
  return static_cast<rlim_t>(lowest + more);
}

// Waits until a warning names what to raise.
void AwaitUlimit() {
  const Deadline deadline(30);
  while (!LogHas("ulimit")) {
    TCPX_REQUIRE(!deadline.Over(), LogText());
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// Polls both ends of a connect to this process. False on an error, or when it has come to nothing a while after a
// warning that names what to raise.
bool TryConnectToSelf(Rank* rank, Ends* ends) {
  char handle[kHandleBytesMax] = {};
  void* listen = nullptr;
  if (rank->net().Listen(rank->context(), 0, handle, &listen) != ncclSuccess) return false;
  const Deadline deadline(30);
  absl::Time give_up = absl::InfiniteFuture();
  bool failed = false;
  while (!failed && (ends->send == nullptr || ends->receive == nullptr) && absl::Now() < give_up) {
    TCPX_REQUIRE(!deadline.Over(), LogText());
    const bool limited = give_up == absl::InfiniteFuture() && WarningCount() > 0 && LogHas("ulimit");
    if (limited) give_up = absl::Now() + absl::Milliseconds(1500);
    if (ends->send == nullptr) {
      failed = rank->net().Connect(rank->context(), 0, handle, &ends->send) != ncclSuccess;
    }
    if (ends->receive == nullptr) failed = failed || rank->net().Accept(listen, &ends->receive) != ncclSuccess;
  }
  rank->CloseListen(listen);
  return ends->send != nullptr && ends->receive != nullptr;
}

void MoveSome(Rank* rank, const Ends& ends) { Transfer(&rank->net(), ends, {200000, 4, 8, true}); }

class LimitsTest : public ModeTest {};

TEST_P(LimitsTest, SoftLimitIsRaised) {
  EXPECT_EQ("", RunAlone([] {
              SetLimits(64, 400);
              Rank rank;
              std::vector<Ends> all;
              for (int i = 0; i < 10; ++i) all.push_back(rank.ConnectToSelf());  // 80 sockets
              rlimit now;
              TCPX_REQUIRE(getrlimit(RLIMIT_NOFILE, &now) == 0 && now.rlim_cur == 400, now.rlim_cur);
              MoveSome(&rank, all.back());
              for (const Ends& ends : all) rank.Close(ends);
              rank.Finalize();
              TCPX_REQUIRE(WarningCount() == 0, LogText());
            }));
}

// The first listen needs a thread's epoll and eventfd, then the socket; with a pool some more.
TEST_P(LimitsTest, FirstListenAtTheHardLimitSaysUlimit) {
  for (int room = 0; room < 3; ++room) {
    EXPECT_EQ("", RunAlone([room] {
                const int threads = ThreadCountAtRest();
                Rank rank;
                const rlim_t limit = RoomFor(room);
                SetLimits(limit, limit);
                char handle[kHandleBytesMax] = {};
                void* listen = nullptr;
                TCPX_REQUIRE(rank.net().Listen(rank.context(), 0, handle, &listen) == ncclSystemError);
                TCPX_REQUIRE(listen == nullptr);
                TCPX_REQUIRE(WarningCount() > 0 && LogHas("ulimit"), LogText());
                rank.Finalize();
                TCPX_REQUIRE(SettlesAtThreads(threads), ThreadCount(), " threads");
                _exit(0);  // Exit handlers of sanitizers open files.
              }))
        << "room for " << room;
  }
}

// What is left of a communicator after a failed connect: all of it, where that is asked for.
TEST_P(LimitsTest, ConnectAtTheHardLimitSaysUlimitAndTheRestLives) {
  setenv("TCPX_SPREAD_ERRORS", "0", 1);
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              const rlim_t limit = RoomFor(40);
              SetLimits(limit, limit);
              std::vector<Ends> all;
              Ends last;
              while (TryConnectToSelf(&rank, &last)) {
                all.push_back(last);
                last = Ends();
                TCPX_REQUIRE(all.size() < 40, "no limit");
              }
              rank.Close(last);
              TCPX_REQUIRE(all.size() >= 2, all.size());
              TCPX_REQUIRE(WarningCount() > 0 && LogHas("ulimit"), LogText());
              for (const Ends& ends : all) MoveSome(&rank, ends);
              rank.Close(all.back());
              all.back() = rank.ConnectToSelf();
              MoveSome(&rank, all.back());
              for (const Ends& ends : all) rank.Close(ends);
              rank.Finalize();
            }));
}

// A lane that was closed keeps a descriptor, and so its part of what a process may have: a quarter of all.
TEST_P(LimitsTest, LanesThatCameAndWentLeaveDescriptorsToOthers) {
  setenv("TCPX_HEAL", "1", 1);
  setenv("TCPX_TEST_SHUFFLE_LANES", "1", 1);
  EXPECT_EQ("", RunAlone([] {
              constexpr int kConnections = 4;
              const size_t before = OpenDescriptors().size();
              const rlim_t limit = RoomFor(40 * kConnections);
              SetLimits(limit, limit);
              Rank rank;
              std::vector<Ends> all;
              for (int i = 0; i < kConnections; ++i) all.push_back(rank.ConnectToSelf());
              const Deadline deadline;
              while (CountInLog(" is closed") < 40 * kConnections) {
                TCPX_REQUIRE(!deadline.Over(), LogText());
                for (const Ends& ends : all) Transfer(&rank.net(), ends, {66000, 2, 4, true});
              }
              const size_t more = OpenDescriptors().size() - before;
              TCPX_REQUIRE(more < limit / 4 + 2 * kConnections + 40, more, " descriptors more");
              for (const Ends& ends : all) rank.Close(ends);
              rank.Finalize();
            }));
}

// Sockets that dial the plugin and say nothing.
class SilentClients {
 public:
  explicit SilentClients(int count) {
    for (int i = 0; i < count; ++i) fds_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  void Connect(const char* handle) {
    for (int fd : fds_) visitors_.emplace_back(handle, fd);
  }
  void Close() { visitors_.clear(); }

 private:
  std::vector<int> fds_;
  std::vector<Visitor> visitors_;
};

// No room for a single one: none is there that could make room for others.
TEST_P(LimitsTest, AcceptAtTheHardLimitRests) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              char handle[kHandleBytesMax] = {};
              void* const listen = rank.Listen(handle);
              SilentClients clients(12);
              const rlim_t limit = RoomFor(0);
              SetLimits(limit, limit);
              clients.Connect(handle);
              AwaitUlimit();
              const double cpu_before = CpuSeconds();
              absl::SleepFor(absl::Seconds(1));  // What is measured.
              // A listener that is readable for ever and can't be accepted from costs a core when nobody minds.
              TCPX_REQUIRE(CpuSeconds() - cpu_before < 0.5, CpuSeconds() - cpu_before, " s of one");
              TCPX_REQUIRE(WarningCount() <= 3, "one line per episode: ", LogText());
              clients.Close();
              const Ends ends = rank.ConnectToSelf();
              MoveSome(&rank, ends);
              rank.Close(ends);
              rank.CloseListen(listen);
              rank.Finalize();
            }));
}

// A socket that lingers keeps the housekeeping thread alive longer than the listener, whose pause has not ended.
TEST_P(LimitsTest, FinalizeWhileTheListenerRests) {
  const auto limited = [](Control& peer) {
    const int threads = ThreadCountAtRest();
    Rank rank;
    const Ends ends = rank.Connect(peer);
    char handle[kHandleBytesMax] = {};
    rank.Listen(handle);
    SilentClients clients(12);
    const rlim_t limit = RoomFor(0);
    SetLimits(limit, limit);
    clients.Connect(handle);
    AwaitUlimit();
    peer.Tell('r');
    rank.Close(ends);
    rank.Finalize();
    TCPX_REQUIRE(SettlesAtThreads(threads), ThreadCount(), " threads");
    clients.Close();
  };
  const auto late = [](Control& peer) {
    Rank rank;
    const Ends ends = rank.Connect(peer);
    peer.Await('r');
    absl::SleepFor(absl::Milliseconds(600));  // Meanwhile the other side's socket lingers; no event says so.
    rank.Close(ends);
    rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(limited, late));
}

INSTANTIATE_TEST_SUITE_P(Modes, LimitsTest, ::testing::ValuesIn(AllModes({4})), ShortModeName);

}  // namespace
}  // namespace tcpx
