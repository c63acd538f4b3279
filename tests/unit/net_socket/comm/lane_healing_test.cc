// Which lanes of an end have a socket, where some are closed and others lost.
#include "net_socket/comm/lane_healing.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/status/status.h"
#include "tests/unit/net_socket/comm/fake_end.h"

namespace tcpx {
namespace {

class LaneHealingTest : public ::testing::Test {
 protected:
  // Two lanes that are up.
  std::unique_ptr<LaneHealing> Standing(Direction direction) {
    setup_.direction = direction;
    setup_.heals = true;
    auto healing = std::make_unique<LaneHealing>(&setup_, Link<ConnectionEnd>());
    healing->lanes().Back(0);
    healing->lanes().Back(1);
    return healing;
  }

  const Options options_;
  Runtime runtime_{options_};
  ConnectionSetup setup_ = FakeSetup(&runtime_, nullptr, false, 2);
};

TEST_F(LaneHealingTest, ASenderNeverRestsItsLastLane) {
  const auto healing = Standing(Direction::kSend);
  EXPECT_TRUE(healing->lanes().Close(1, MonotonicNanos()));
  EXPECT_FALSE(healing->lanes().Close(0, MonotonicNanos()));
  EXPECT_TRUE(healing->lanes().up(0));
}

// Its others may be lost at this end only, and come back: what the sender has closed is not waited for.
TEST_F(LaneHealingTest, AReceiverRestsTheOneThatIsUpLast) {
  const auto healing = Standing(Direction::kReceive);
  ASSERT_TRUE(healing->LetGo(absl::UnavailableError("lost"), 0));
  EXPECT_EQ(0, healing->lanes().none_since_ns());
  EXPECT_GT(healing->lanes().lost_since_ns(0), 0);
  EXPECT_EQ(0, healing->lanes().lost_since_ns(1));
  EXPECT_TRUE(healing->lanes().Close(1, MonotonicNanos()));
  EXPECT_FALSE(healing->lanes().lost(1));
  EXPECT_GT(healing->lanes().none_since_ns(), 0) << "no lane is up now";
  healing->lanes().Back(0);
  EXPECT_FALSE(healing->lanes().AnyLost());
  EXPECT_EQ(0, healing->lanes().lost_since_ns(0));
  EXPECT_EQ(0, healing->lanes().none_since_ns());
}

// A lane that was lost and comes back is no new one.
TEST_F(LaneHealingTest, CountsLanesThatComeAndGo) {
  const auto healing = Standing(Direction::kSend);
  EXPECT_EQ(2u, healing->tally().added);
  ASSERT_TRUE(healing->LetGo(absl::UnavailableError("slow"), 1));
  EXPECT_FALSE(healing->lanes().absent(1));
  healing->lanes().Back(1);
  EXPECT_EQ(2u, healing->tally().added);
  EXPECT_EQ(0u, healing->tally().dropped);
  ASSERT_TRUE(healing->lanes().Close(1, MonotonicNanos()));
  EXPECT_TRUE(healing->lanes().absent(1));
  EXPECT_FALSE(healing->lanes().Close(1, MonotonicNanos()));
  EXPECT_EQ(1u, healing->tally().dropped);
  healing->lanes().Back(1);
  EXPECT_FALSE(healing->lanes().absent(1));
  EXPECT_EQ(3u, healing->tally().added);
}

}  // namespace
}  // namespace tcpx
