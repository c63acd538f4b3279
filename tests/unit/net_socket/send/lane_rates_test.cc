#include "net_socket/send/lane_rates.h"

#include <gtest/gtest.h>

namespace tcpx {
namespace {

// Bulk that waits all the time on one path, which one lane fills.
int CarryingAfter(LaneRates* rates, int lanes, int64_t ns) {
  uint64_t acked = 0;
  int carrying = 0;
  for (int64_t now = kSecond; now < kSecond + ns; now += kMillisecond) {
    acked += 100'000;
    carrying = 0;
    for (int i = 0; i < lanes; ++i) carrying += rates->Carries(i) ? 1 : 0;
    // Each brings its part, and a paused one no more than it has.
    LaneRates::Seen seen;
    seen.acked = acked / static_cast<uint64_t>(lanes);
    rates->Looked(static_cast<int>(now / kMillisecond) % lanes, now, seen);
  }
  return carrying;
}

TEST(LaneRatesTest, SharesAreEqualUntilAllAreKnownAndThenByPace) {
  LaneRates rates(LaneRates::Settings{{4, 4}});
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(0.25, rates.Share(i));
  for (int i = 0; i < 3; ++i) rates.Set(i, 1000);
  for (int i = 0; i < 4; ++i) EXPECT_DOUBLE_EQ(0.25, rates.Share(i));
  rates.Set(3, 100);
  double sum = 0;
  for (int i = 0; i < 4; ++i) sum += rates.Share(i);
  EXPECT_DOUBLE_EQ(1, sum);
  EXPECT_DOUBLE_EQ(100.0 / 3100, rates.Share(3));
  EXPECT_DOUBLE_EQ(1000.0 / 3100, rates.Share(0));
}

TEST(LaneRatesTest, AllCarryUnlessPiloted) {
  LaneRates rates(LaneRates::Settings{{4, 4}});
  EXPECT_EQ(4, CarryingAfter(&rates, 4, 10 * kSecond));
}

TEST(LaneRatesTest, APilotedConnectionPausesLanesThatBringNothing) {
  LaneRates rates(LaneRates::Settings{{4, 4}, true});
  EXPECT_EQ(1, CarryingAfter(&rates, 4, 10 * kSecond));
}

TEST(LaneRatesTest, APausedLaneHasNoShare) {
  LaneRates rates(LaneRates::Settings{{4, 4}, true});
  for (int i = 0; i < 4; ++i) rates.Set(i, 1000);
  ASSERT_EQ(1, CarryingAfter(&rates, 4, 10 * kSecond));
  for (int i = 0; i < 4; ++i) {
    if (!rates.Carries(i)) continue;
    EXPECT_DOUBLE_EQ(1, rates.Share(i));
  }
}

TEST(LaneRatesTest, ALoneLaneIsNotPaused) {
  LaneRates rates(LaneRates::Settings{{1, 1}, true});
  EXPECT_EQ(1, CarryingAfter(&rates, 1, 10 * kSecond));
}

}  // namespace
}  // namespace tcpx
