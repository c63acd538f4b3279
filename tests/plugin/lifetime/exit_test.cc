// exit() in the middle of everything: a script that ends with an exception closes nothing. The process must end, at
// once, and the peer must hear of it.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/seed.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

// Far above what it takes, far below TCPX_LINGER as set here.
const absl::Duration kAtOnce = TimeScale() * absl::Seconds(25);
constexpr Stream::Shape kShape;

struct Traffic {
  explicit Traffic(Control& peer, int version = 0)
      : rank(version), ends(rank.Connect(peer)), streams(&rank.net(), ends, kShape) {}

  Rank rank;
  Ends ends;
  BothWays streams;
};

// Sends in both directions until both have failed, which they do when the other process has gone.
void RunToTheEnd(Control& peer) {
  Traffic traffic(peer);
  for (bool going = true; going;) {
    const ncclResult_t sent = traffic.streams.send.Step();
    const ncclResult_t received = traffic.streams.receive.Step();
    going = sent == ncclSuccess || received == ncclSuccess;
  }
  TCPX_REQUIRE(traffic.streams.send.Step() == ncclRemoteError && traffic.streams.receive.Step() == ncclRemoteError);
  traffic.streams.Deregister();
  traffic.streams.receive.RequireUnfinishedPlausible();
  traffic.rank.Close(traffic.ends);
  traffic.rank.Finalize();
}

class ExitTest : public ModeTest {
 protected:
  void SetUp() override {
    ModeTest::SetUp();
    setenv("TCPX_LINGER", "600", 1);
  }
};

void ExitWithTraffic(Control& peer, int version) {
  auto* traffic = new Traffic(peer, version);  // Not destroyed by exit.
  traffic->streams.RunFor(40);
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
    traffic->streams.RunFor(10);
    std::thread([traffic] {
      for (;;) {
        (void)traffic->streams.send.Step();
        (void)traffic->streams.receive.Step();
      }
    }).detach();
    const int64_t seen = traffic->streams.receive.finished();
    while (traffic->streams.receive.finished() < seen + 20) absl::SleepFor(absl::Milliseconds(1));
    exit(0);
  };
  EXPECT_EQ("", RunTogether(leave, RunToTheEnd, kAtOnce));
}

TEST_P(ExitTest, BeforeTheConnectionIsUp) {
  for (int version : {12, 6}) {
    EXPECT_EQ("", RunAlone(
                      [version] {
                        auto* rank = new Rank(version);
                        char handle[kHandleBytesMax] = {};
                        rank->Listen(handle);
                        void* send = nullptr;
                        TCPX_REQUIRE(rank->net().Connect(rank->context(), 0, handle, &send) == ncclSuccess);
                        exit(0);
                      },
                      kAtOnce))
        << "v" << version;
  }
}

// NCCL's threads poll a connect and an accept while main returns, and after it.
TEST_P(ExitTest, WhileOthersPollAConnectAndAnAccept) {
  const auto leave = [](int version) {
    auto* rank = new Rank(version);
    static std::array<char, kHandleBytesMax> handle = {};
    void* const listen = rank->Listen(handle.data());
    static const FakeAcceptor silent;  // Its kernel accepts.
    silent.WriteHandle(handle.data());
    static std::atomic<int> polls{0};
    std::thread([rank] {
      for (void* send = nullptr;; ++polls) (void)rank->net().Connect(rank->context(), 0, handle.data(), &send);
    }).detach();
    std::thread([rank, listen] {
      for (void* receive = nullptr;; ++polls) (void)rank->net().Accept(listen, &receive);
    }).detach();
    const Deadline deadline(20);
    while (polls < 100) TCPX_REQUIRE(deadline.Yield(), LogText());
    exit(0);
  };
  for (int version : {12, 6}) {
    for (int i = 0; i < 5; ++i) EXPECT_EQ("", RunAlone([&] { leave(version); }, kAtOnce)) << "v" << version;
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ExitTest, ::testing::ValuesIn(AllModes({1, 4})), ShortModeName);

}  // namespace
}  // namespace tcpx
