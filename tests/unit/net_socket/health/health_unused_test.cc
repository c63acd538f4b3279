// Health sockets that no connection uses: they end in time, and take their timers along.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "common/clock.h"
#include "net_socket/health/health_peer.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/health/health_pair.h"

namespace tcpx {
namespace {

// A stranger who dials health sockets and leaves, again and again, leaves no timer, and so no memory.
TEST_F(HealthTest, ASocketThatLeavesTakesItsTimerAlong) {
  size_t before = 0;
  reactor_.RunSync([&] { before = reactor_.TimersInLoop(); });
  for (uint64_t tag = 100; tag < 20100; ++tag) {
    TcpPair pair = MakeTcpPair(0);
    reactor_.RunSync([&] {
      far_hub_.AcceptInLoop(tag, std::move(pair.b), {kTimeout});
      far_hub_.DropUnusedLaterInLoop(tag, kTimeout);
      far_hub_.DropUnusedLaterInLoop(tag, kTimeout);
      ResetSocket(std::move(pair.a));
      far_hub_.LookInLoop(tag);
      EXPECT_EQ(nullptr, far_hub_.FindAcceptedInLoop(tag));
    });
    if (testing::Test::HasFailure()) break;
  }
  // A reset is reported some milliseconds later.
  Deadline deadline;
  for (size_t after = before + 1; after > before;) {
    ASSERT_TRUE(deadline.Yield()) << after << " timers";
    reactor_.RunSync([&] { after = reactor_.TimersInLoop(); });
  }
}

// One that stays is closed in time, unless somebody uses it.
TEST_F(HealthTest, AnUnusedSocketIsClosedInTime) {
  TcpPair pair = MakeTcpPair(0);
  reactor_.RunSync([&] {
    far_hub_.AcceptInLoop(100, std::move(pair.b), {kTimeout});
    far_->UseInLoop();
    far_hub_.DropUnusedLaterInLoop(far_->tag(), 0);
    far_hub_.DropUnusedLaterInLoop(100, kMillisecond);
  });
  Deadline deadline;
  for (bool there = true; there;) {
    ASSERT_TRUE(deadline.Yield());
    reactor_.RunSync([&] { there = far_hub_.FindAcceptedInLoop(100) != nullptr; });
  }
  reactor_.RunSync([&] { EXPECT_EQ(far_, far_hub_.FindAcceptedInLoop(7)); });
}

// Each time that it begins, the latest counts.
TEST_F(HealthTest, TheTimeOfAnUnusedSocketBeginsAnew) {
  TcpPair stays = MakeTcpPair(0);
  TcpPair goes = MakeTcpPair(0);
  reactor_.RunSync([&] {
    far_hub_.AcceptInLoop(100, std::move(stays.b), {kTimeout});
    far_hub_.DropUnusedLaterInLoop(100, kMillisecond);
    far_hub_.DropUnusedLaterInLoop(100, 3600 * kSecond);
    far_hub_.AcceptInLoop(101, std::move(goes.b), {kTimeout});
    far_hub_.DropUnusedLaterInLoop(101, 3600 * kSecond);
    far_hub_.DropUnusedLaterInLoop(101, kMillisecond);
  });
  Deadline deadline;
  for (bool there = true; there;) {
    ASSERT_TRUE(deadline.Yield());
    reactor_.RunSync([&] { there = far_hub_.FindAcceptedInLoop(101) != nullptr; });
  }
  reactor_.RunSync([&] { EXPECT_NE(nullptr, far_hub_.FindAcceptedInLoop(100)); });
}

TEST_F(HealthTest, ASocketThatIsUnusedAgainIsClosedInTime) {
  TcpPair pair = MakeTcpPair(0);
  std::shared_ptr<HealthPeer> health;
  size_t timers = 0;
  reactor_.RunSync([&] {
    far_hub_.AcceptInLoop(100, std::move(pair.b), {kTimeout});
    health = far_hub_.FindAcceptedInLoop(100);
    health->UseInLoop();
    far_hub_.DropUnusedLaterInLoop(100, kMillisecond);
    timers = reactor_.TimersInLoop();
  });
  // The deadline has passed while it was used: its timer is gone.
  Deadline deadline;
  for (size_t now = timers; now >= timers;) {
    ASSERT_TRUE(deadline.Yield());
    reactor_.RunSync([&] { now = reactor_.TimersInLoop(); });
  }
  reactor_.RunSync([&] {
    EXPECT_EQ(health, far_hub_.FindAcceptedInLoop(100));
    health->UnuseInLoop();
  });
  for (bool there = true; there;) {
    ASSERT_TRUE(deadline.Yield());
    reactor_.RunSync([&] { there = far_hub_.FindAcceptedInLoop(100) != nullptr; });
  }
  reactor_.RunSync([&] { EXPECT_EQ(0, far_hub_.unused_in_loop()); });
}

}  // namespace
}  // namespace tcpx
