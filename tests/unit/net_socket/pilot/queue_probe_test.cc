// What the round trips of lanes that were just opened say of the path.
#include <gtest/gtest.h>

#include <vector>

#include "net_socket/pilot/trials.h"

namespace tcpx {
namespace {

constexpr int kLanes = 8;

// Four lanes carry, and four more are opened in a trial.
class QueueProbeTest : public ::testing::Test {
 protected:
  QueueProbeTest() : lanes_({4, kLanes, true, 0}), acked_(kLanes), round_trips_(kLanes) {}

  QueueProbe::Found Find(const std::vector<int64_t>& carrying_us, const std::vector<int64_t>& found_us) {
    for (size_t i = 0; i < carrying_us.size(); ++i) round_trips_[i] = {carrying_us[i], 20};
    See();
    const PilotedLanes::Lanes opened = lanes_.Open(4, 4);
    probe_.Begin(lanes_, opened);
    for (size_t i = 0; i < found_us.size(); ++i) {
      round_trips_[static_cast<size_t>(opened[i])] = {found_us[i], found_us[i]};
      (void)lanes_.Opened(opened[i]);
    }
    See();
    // Later they are in a queue with the others, or have seen it empty: that does not count.
    for (const int lane : opened) round_trips_[static_cast<size_t>(lane)] = {9000, 20};
    See();
    return probe_.found();
  }

  void See() { probe_.See({acked_, true, 1, nullptr, &round_trips_}, lanes_); }

  PilotedLanes lanes_;
  std::vector<uint64_t> acked_;
  std::vector<LanePolicy::RoundTrips> round_trips_;
  QueueProbe probe_;
};

TEST_F(QueueProbeTest, AllAreInOneQueue) {
  EXPECT_EQ(QueueProbe::Found::kSameQueue, Find({5000, 5200, 5600, 6000}, {4000, 4010, 4020, 4030}));
}

TEST_F(QueueProbeTest, AShortMomentOfThatQueueIsNoEmptyPath) {
  EXPECT_EQ(QueueProbe::Found::kSameQueue, Find({5000, 5200, 5600, 6000}, {600, 600, 610, 610}));
}

TEST_F(QueueProbeTest, OneFindsAnEmptyPath) {
  EXPECT_EQ(QueueProbe::Found::kEmptyPath, Find({5000, 5200, 5600, 6000}, {4000, 4010, 25, 4030}));
}

TEST_F(QueueProbeTest, ThoseThatCarryAreInSeveralQueues) {
  EXPECT_EQ(QueueProbe::Found::kAnother, Find({5000, 5200, 5600, 11000}, {4000, 4010, 4020, 4030}));
}

TEST_F(QueueProbeTest, TheNewOnesFindSeveralQueues) {
  EXPECT_EQ(QueueProbe::Found::kAnother, Find({5000, 5200, 5600, 6000}, {4000, 8000, 4020, 4030}));
}

TEST_F(QueueProbeTest, WithoutAQueueNothingIsKnown) {
  EXPECT_EQ(QueueProbe::Found::kUnknown, Find({300, 300, 320, 310}, {200, 200, 200, 200}));
}

TEST_F(QueueProbeTest, WhereNoneHasComeNothingIsKnown) {
  EXPECT_EQ(QueueProbe::Found::kUnknown, Find({5000, 5200, 5600, 6000}, {}));
}

TEST_F(QueueProbeTest, WithoutRoundTripsNothingIsKnown) {
  probe_.See({acked_}, lanes_);
  probe_.Begin(lanes_, lanes_.Open(4, 4));
  EXPECT_EQ(QueueProbe::Found::kUnknown, probe_.found());
}

}  // namespace
}  // namespace tcpx
