// exit() in the middle of everything: a script that ends with an exception closes nothing. The process must end, at
// once, and the peer must hear of it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "tests/plugin/lifetime/mode_test.h"
#include "tests/plugin/lifetime/processes.h"
#include "tests/plugin/lifetime/rank.h"
#include "tests/plugin/lifetime/stream.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

// Far above what it takes, far below TCPX_LINGER as set here.
const absl::Duration kAtOnce = TimeScale() * absl::Seconds(25);
constexpr Stream::Shape kShape;

struct Traffic {
  explicit Traffic(Control& peer, int version = 0)
      : rank(version),
        ends(rank.Connect(peer)),
        send(&rank.net(), Stream::Way::kSend, ends.send, kShape),
        recv(&rank.net(), Stream::Way::kReceive, ends.recv, kShape) {}

  Rank rank;
  Ends ends;
  Stream send;
  Stream recv;
};

// Both ways until both have failed, which they do when the other process has gone.
void RunToTheEnd(Control& peer) {
  Traffic traffic(peer);
  for (bool going = true; going;) {
    const ncclResult_t sent = traffic.send.Step();
    const ncclResult_t received = traffic.recv.Step();
    going = sent == ncclSuccess || received == ncclSuccess;
  }
  TCPX_REQUIRE(traffic.send.Step() == ncclRemoteError && traffic.recv.Step() == ncclRemoteError);
  traffic.send.Deregister();
  traffic.recv.Deregister();
  traffic.recv.RequireUnfinishedPlausible();
  traffic.rank.Close(traffic.ends);
  traffic.rank.Finalize();
}

class ExitTest : public ModeTest {
 protected:
  void SetUp() override {
    ModeTest::SetUp();
    setenv("TCPX_LINGER", "600", 1);
  }
  void TearDown() override { unsetenv("TCPX_LINGER"); }
};

void ExitWithTraffic(Control& peer, int version) {
  auto* traffic = new Traffic(peer, version);  // Not destroyed by exit.
  RunFor(40, &traffic->send, &traffic->recv);
  exit(0);
}

TEST_P(ExitTest, WithTrafficPending) {
  for (int version : {12, 10}) {
    EXPECT_EQ("", RunTogether([version](Control& peer) { ExitWithTraffic(peer, version); }, RunToTheEnd, kAtOnce))
        << "v" << version;
  }
}

// NCCL's proxy threads are still at work when main returns.
TEST_P(ExitTest, WithAnotherThreadInside) {
  const auto leave = [](Control& peer) {
    auto* traffic = new Traffic(peer);
    RunFor(10, &traffic->send, &traffic->recv);
    std::thread([traffic] {
      for (;;) {
        (void)traffic->send.Step();
        (void)traffic->recv.Step();
      }
    }).detach();
    absl::SleepFor(absl::Milliseconds(30));
    exit(0);
  };
  EXPECT_EQ("", RunTogether(leave, RunToTheEnd, kAtOnce));
}

TEST_P(ExitTest, BeforeTheConnectionStands) {
  for (int version : {12, 6}) {
    EXPECT_EQ("", RunAlone(
                      [version] {
                        auto* rank = new Rank(version);
                        char handle[kHandleBytesMax] = {};
                        void* listen = nullptr;
                        TCPX_REQUIRE(rank->net().Listen(rank->context(), 0, handle, &listen) == ncclSuccess);
                        void* send = nullptr;
                        TCPX_REQUIRE(rank->net().Connect(rank->context(), 0, handle, &send) == ncclSuccess);
                        exit(0);
                      },
                      kAtOnce))
        << "v" << version;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ExitTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
