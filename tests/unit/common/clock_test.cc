#include "common/clock.h"

#include "gtest/gtest.h"

namespace tcpx {
namespace {

TEST(ClockTest, UnitsBuildOnEachOther) {
  EXPECT_EQ(kMicrosecond, 1000);
  EXPECT_EQ(kMillisecond, 1000000);
  EXPECT_EQ(kSecond, 1000000000);
}

TEST(ClockTest, NeverGoesBackAndIsTheMonotonicClock) {
  timespec before;
  ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &before), 0);
  int64_t last = before.tv_sec * kSecond + before.tv_nsec;
  for (int i = 0; i < 1000; ++i) {
    const int64_t now = MonotonicNanos();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ClockTest, TheCoarseClockIsTheSameButLate) {
  const int64_t before = MonotonicNanos();
  const int64_t coarse = CoarseMonotonicNanos();
  const int64_t after = MonotonicNanos();
  EXPECT_LE(coarse, after);
  EXPECT_GE(coarse, before - 10 * kMillisecond);
}

}  // namespace
}  // namespace tcpx
