// What becomes of a sending end when a lane can't be resumed.
#include "net_socket/comm/sender_healing.h"

#include <gtest/gtest.h>

#include <memory>

#include "absl/status/status.h"
#include "tests/unit/net_socket/comm/fake_end.h"

namespace tcpx {
namespace {

class SenderHealingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Logged().clear();
    failure_.healing().lanes().Back(0);
    end_.flight.messages = 1;
  }

  ConnectionSetup HealingSetup() {
    ConnectionSetup setup = FakeSetup(&runtime_);
    setup.health = std::make_shared<HealthPeer>(&hub_, &runtime_.reactor, 1, true, nullptr);
    setup.heals = true;
    return setup;
  }

  const Options options_;
  Runtime runtime_{options_};
  HealthHub hub_{&runtime_.reactor};
  const ConnectionSetup setup_ = HealingSetup();
  FakeEnd end_;
  ConnectionFailure failure_{&setup_, &end_, NoTie()};
  PeerLoss loss_;
  SenderHealing sender_{{&setup_, &NoTie(), &failure_, nullptr, nullptr, &end_, nullptr, &loss_}};
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
