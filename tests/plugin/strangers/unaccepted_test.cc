// Who has a ticket completes connections that nobody accepts, begins others, and dials health sockets for none: all of
// them together get a quarter of the descriptors, and peers get through.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <deque>
#include <string>

#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/by_hand.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr rlim_t kLimit = 512;
constexpr size_t kQuarter = kLimit / 4;
constexpr char kTold[] = "have a quarter of the descriptors";

// Of connection `number`, whose process nobody else is.
Hello NumberedHello(size_t number, HelloKind kind, uint16_t lanes) {
  Hello hello;
  hello.kind = kind;
  hello.features = kFeatureEstablished;
  hello.lanes = lanes;
  for (size_t i = 0; i < sizeof(uint32_t); ++i) {
    hello.connection_id[i] = hello.connection_id[8 + i] = static_cast<uint8_t>((number + 1) >> (8 * i));
  }
  return hello;
}

class Crowd {
 public:
  explicit Crowd(const char* handle) : handle_(handle) {}

  // False: it got no answer. What is accepted stays; `says` is what it says then.
  bool Comes(HelloKind kind, uint16_t lanes, const std::string& says = "") {
    Visitor visitor(handle_);
    TCPX_REQUIRE(visitor.Say(HelloFor(handle_, NumberedHello(came_++, kind, lanes))));
    const std::string bytes = visitor.Hear(kAnswerFixedBytes);
    if (bytes.empty()) return false;
    TCPX_REQUIRE(visitor.Say(says));
    visitors_.push_back(std::move(visitor));
    return true;
  }
  // How many do, at most so many as there are descriptors.
  size_t Fills(HelloKind kind, uint16_t lanes, const std::string& says = "") {
    size_t count = 0;
    while (count < kLimit && Comes(kind, lanes, says)) ++count;
    return count;
  }
  void LeaveFirst() { visitors_.pop_front(); }
  void Leave() { visitors_.clear(); }

 private:
  const char* const handle_;
  size_t came_ = 0;
  std::deque<Visitor> visitors_;
};

class UnacceptedTest : public ::testing::Test {
 protected:
  void SetUp() override { Mode{.threads = 2, .lanes = 2}.Apply(); }
};

// Has them at one listen of a process of few descriptors. After that peers of other listens get through, and all is
// given back with the listen.
template <typename Function>
std::string RunBeforeACrowd(Function function) {
  return RunAlone([&] {
    const rlimit both{kLimit, kLimit};
    TCPX_REQUIRE(setrlimit(RLIMIT_NOFILE, &both) == 0);
    Rank rank;
    ListenByHand listening(&rank);
    Crowd crowd(listening.handle);
    function(&rank, &listening, &crowd);
    rank.Close(rank.ConnectToSelf());
    TCPX_REQUIRE(CountInLog(kTold) == 1, LogText());
    crowd.Leave();
    listening.Close();
  });
}

TEST_F(UnacceptedTest, CompleteConnectionsThatNobodyAccepts) {
  EXPECT_EQ("", RunBeforeACrowd([](Rank* rank, ListenByHand* listening, Crowd* crowd) {
              const size_t came = crowd->Fills(HelloKind::kLane, 1, Established());
              TCPX_REQUIRE(came == kQuarter / 2, came);
              rank->Close(rank->ConnectToSelf());
              rank->CloseReceive(listening->AcceptWithin());
              TCPX_REQUIRE(crowd->Comes(HelloKind::kLane, 1), "one was accepted, and another may come");
            }));
}

// They may get 33 lanes each, and a health socket, while nobody accepts them.
TEST_F(UnacceptedTest, ConnectionsThatLackLanes) {
  EXPECT_EQ("", RunBeforeACrowd([](Rank*, ListenByHand*, Crowd* crowd) {
              const size_t came = crowd->Fills(HelloKind::kLane, 2);
              TCPX_REQUIRE(came == kQuarter / (kLanesPilotedMax + 1), came);
            }));
}

TEST_F(UnacceptedTest, HealthSocketsThatNobodyUses) {
  EXPECT_EQ("", RunBeforeACrowd([](Rank*, ListenByHand*, Crowd* crowd) {
              const size_t came = crowd->Fills(HelloKind::kHealth, 1);
              TCPX_REQUIRE(came == kQuarter, came);
              TCPX_REQUIRE(crowd->Comes(HelloKind::kLane, 1), "a listen has one connection");
              TCPX_REQUIRE(!crowd->Comes(HelloKind::kHealth, 1));
              for (int i = 0; i < 3; ++i) crowd->LeaveFirst();
              const Deadline deadline;
              while (!crowd->Comes(HelloKind::kHealth, 1)) TCPX_REQUIRE(deadline.Yield(), "places are free");
            }));
}

}  // namespace
}  // namespace tcpx
