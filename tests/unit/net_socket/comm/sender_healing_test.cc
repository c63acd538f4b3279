// What becomes of a sending end when a lane can't be resumed.
#include "net_socket/comm/sender_healing.h"

#include <gtest/gtest.h>

#include "absl/status/status.h"
#include "tests/unit/net_socket/comm/fake_end.h"

namespace tcpx {
namespace {

class SenderHealingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Logged().clear();
    healing_.lanes().Back(0);
    end_.flight.messages = 1;
  }

  const Options options_;
  Runtime runtime_{options_};
  const ConnectionSetup setup_ = FakeSetup(&runtime_);
  FakeEnd end_;
  LaneHealing healing_{&setup_, Direction::kSend, Link<LaneHealing::Owner>()};
  ConnectionFailure failure_{&setup_, Direction::kSend, &end_, NoTie(), &healing_};
  PeerLoss loss_;
  SenderHealing sender_{{&setup_, &NoTie(), &healing_, &failure_, nullptr, nullptr, &end_, nullptr, &loss_}};
};

TEST_F(SenderHealingTest, ALaneThatIsGoneUnderAMessageFailsTheConnection) {
  sender_.LaneGone(absl::UnavailableError("gone"), 0);
  EXPECT_TRUE(failure_.failed());
  EXPECT_FALSE(loss_.known());
  EXPECT_EQ(1u, Logged().size());
}

TEST_F(SenderHealingTest, ALaneThatIsGoneUnderNothingIsNoted) {
  end_.flight.messages = 0;
  sender_.LaneGone(absl::UnavailableError("gone"), 0);
  EXPECT_FALSE(failure_.failed());
  EXPECT_TRUE(loss_.known());
  EXPECT_TRUE(Logged().empty());
}

// The peer has its bye, and has closed.
TEST_F(SenderHealingTest, ALaneThatIsGoneUnderAByeIsNoted) {
  loss_.Part();
  sender_.LaneGone(absl::UnavailableError("gone"), 0);
  EXPECT_FALSE(failure_.failed());
  EXPECT_TRUE(loss_.known());
  EXPECT_TRUE(Logged().empty());
}

}  // namespace
}  // namespace tcpx
