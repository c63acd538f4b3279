// What dials for a connection that is up keeps nothing of what the connection gives back when it closes.
#include <gtest/gtest.h>

#include <memory>

#include "net_socket/connect/health_dial.h"
#include "net_socket/connect/resume_dials.h"

namespace tcpx {
namespace {

// What the setup's request alone would keep.
struct Kept {
  Kept() {
    auto taken = std::make_shared<int>(3);
    lanes = taken;
    setup.request.taken_lanes = std::move(taken);
    communicator = setup.request.communicator;
  }
  bool gone() const { return lanes.expired() && communicator.expired(); }

  DialSetup setup;
  std::weak_ptr<const int> lanes;
  std::weak_ptr<const Communicator> communicator;
};

TEST(StandingDialsTest, OfTheHealthSocket) {
  Kept kept;
  const auto dial = std::make_shared<HealthDial>(kept.setup, std::vector<LanePath>(1));
  kept.setup = DialSetup();
  EXPECT_TRUE(kept.gone());
}

TEST(StandingDialsTest, OfLanes) {
  Kept kept;
  const auto dials = std::make_shared<ResumeDials>(kept.setup, nullptr, std::vector<LanePath>(1));
  kept.setup = DialSetup();
  EXPECT_TRUE(kept.gone());
}

}  // namespace
}  // namespace tcpx
