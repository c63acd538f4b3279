#include <gtest/gtest.h>

#include "common/clock.h"
#include "net_socket/send/lane_rates.h"
#include "net_socket/send/tuning.h"

namespace tcpx {
namespace {

constexpr int64_t kChunk = 64 << 10;
constexpr double kDrainSeconds = static_cast<double>(tuning::kDrainNs) / kSecond;

// Feeds a lane that is always busy and drains `bytes_per_second`, one look a millisecond.
void Drain(LaneRate* rate, int64_t bytes_per_second, int looks, int64_t* now, uint64_t* acked) {
  constexpr int64_t kHeld = 100000;
  for (int i = 0; i < looks; ++i) {
    *now += kMillisecond;
    *acked += static_cast<uint64_t>(bytes_per_second / 1000);
    rate->Sample(*now, *acked + kHeld, kHeld);
  }
}

TEST(LaneRateTest, UnknownAtFirst) {
  LaneRate rate(kChunk);
  EXPECT_EQ(0, rate.bytes_per_second());
  EXPECT_LE(kChunk, rate.held_max());
  EXPECT_LT(0, rate.RetryAfterNs(10 * kChunk, kChunk));
}

TEST(LaneRateTest, LearnsThePaceAndFollowsIt) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  EXPECT_NEAR(1e9, static_cast<double>(rate.bytes_per_second()), 1e7);
  EXPECT_NEAR(1e9 * kDrainSeconds, static_cast<double>(rate.held_max()), 1e7 * kDrainSeconds);
  Drain(&rate, 100'000'000, 50, &now, &acked);
  EXPECT_NEAR(1e8, static_cast<double>(rate.bytes_per_second()), 1e7);
  EXPECT_NEAR(1e8 * kDrainSeconds, static_cast<double>(rate.held_max()), 1e7 * kDrainSeconds);
}

TEST(LaneRateTest, TheLeastChunkIsShorterWhereTheLaneIsSlow) {
  LaneRate rate(kChunk);
  EXPECT_EQ(tuning::kChunkUnknownBytes, rate.chunk_least()) << "unknown";
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  EXPECT_EQ(kChunk, rate.chunk_least());
  Drain(&rate, 64'000'000, 80, &now, &acked);
  EXPECT_NEAR(32000, static_cast<double>(rate.chunk_least()), 1000);
  Drain(&rate, 1'000'000, 400, &now, &acked);
  EXPECT_EQ(tuning::kChunkLeastBytes, rate.chunk_least());
}

// A socket died: what it had not delivered is sent again, by another one. The rate was negative then.
TEST(LaneRateTest, WhatIsSentAgainIsNoRate) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  const int64_t before = rate.bytes_per_second();
  for (const int64_t back : {1'000'000, 40'000'000}) {
    acked -= static_cast<uint64_t>(back);
    now += 10 * kMillisecond;
    rate.Sample(now, acked + 100'000, 100'000);
    EXPECT_EQ(before, rate.bytes_per_second());
  }
  // The kernel may still hold what is sent again.
  now += 10 * kMillisecond;
  rate.Sample(now, 1000, 2000);
  EXPECT_EQ(before, rate.bytes_per_second());
  acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  EXPECT_NEAR(1e9, static_cast<double>(rate.bytes_per_second()), 1e7);
}

TEST(LaneRateTest, HoldsMoreOverALongPath) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  const int64_t near = rate.held_max();
  rate.set_min_rtt_ns(10 * kMillisecond);
  EXPECT_NEAR(static_cast<double>(near) + 2e7, static_cast<double>(rate.held_max()), 1e6);
}

// 200 Mbit/s: 1 MiB over eight of them is 128 KiB and 5 ms each.
TEST(LaneRateTest, HoldsHalfOfItsPartOfWhatIsUnderWay) {
  LaneRate rate(16 << 10);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 25'000'000, 50, &now, &acked);
  EXPECT_EQ(64 << 10, rate.held_max(128 << 10));
  EXPECT_EQ(rate.held_max(), rate.held_max(1 << 20));
  // What drains at once may be held whole: its thread may not come back sooner.
  EXPECT_EQ(40 << 10, rate.held_max(40 << 10));
  EXPECT_NEAR(50'000, static_cast<double>(rate.held_max(80'000)), 3'000);
  // A long path has to be filled.
  rate.set_min_rtt_ns(5 * kMillisecond);
  EXPECT_EQ(128 << 10, rate.held_max(128 << 10));
}

TEST(LaneRateTest, ASlowLaneMayAlwaysHoldAChunk) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000, 50, &now, &acked);
  EXPECT_EQ(kChunk, rate.held_max());
  EXPECT_EQ(kChunk, rate.chunk_max());
}

// A shaper at 0.1 Gbit/s lets 64 KiB through at once, every 5 ms; most looks see nothing move.
TEST(LaneRateTest, AcknowledgementsInLumpsAreNotAFastFlow) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  for (int i = 0; i < 1000; ++i) {
    now += kMillisecond / 2;
    if (i % 10 == 0) acked += 62500;
    rate.Sample(now, acked + 200000, 200000);
  }
  EXPECT_NEAR(12.5e6, static_cast<double>(rate.bytes_per_second()), 1.5e6);
}

// It takes no more in the meantime, and goes on as before.
TEST(LaneRateTest, AGapIsNotASlowFlow) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  for (int i = 0; i < 20; ++i) rate.Sample(now += kMillisecond, acked + 20'000'000, 20'000'000);
  acked += 20'000'000;
  Drain(&rate, 1'000'000'000, 10, &now, &acked);
  EXPECT_NEAR(1e9, static_cast<double>(rate.bytes_per_second()), 2e8);
}

TEST(LaneRateTest, TheFirstRoundTripIsNotAStandstill) {
  LaneRate rate(kChunk);
  rate.set_min_rtt_ns(20 * kMillisecond);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  const int64_t busy = rate.bytes_per_second();
  acked += 100000;  // The rest of what was held.
  rate.Sample(now += 30 * kMillisecond, acked, 0);
  for (int i = 0; i < 30; ++i) rate.Sample(now += kMillisecond, acked + 1'000'000, 1'000'000);
  EXPECT_EQ(busy, rate.bytes_per_second());
}

// A delayed acknowledgement of the last bytes is no standstill either.
TEST(LaneRateTest, ASmallRestMayStayUnacknowledged) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  const int64_t busy = rate.bytes_per_second();
  acked += 95000;
  for (int i = 0; i < 40; ++i) rate.Sample(now += kMillisecond, acked + 5000, 5000);
  EXPECT_EQ(busy, rate.bytes_per_second());
}

// What a lane sent before it had nothing more to send says only that it is at least so fast.
TEST(LaneRateTest, AnIdleLaneIsNotASlowOne) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  const int64_t busy = rate.bytes_per_second();
  for (int i = 0; i < 50; ++i) {
    now += kMillisecond;
    acked += 1000;
    rate.Sample(now, acked, 0);
  }
  EXPECT_EQ(busy, rate.bytes_per_second());
  now += 10 * kSecond;
  rate.Sample(now, acked + 5000, 100);
  EXPECT_EQ(busy, rate.bytes_per_second()) << "a long pause was taken for a slow flow";
}

TEST(LaneRateTest, ClosePairsOfLooksAreOne) {
  LaneRate rate(kChunk);
  rate.Sample(kSecond, 1000, 500);
  rate.Sample(kSecond + 1, 1'000'000, 500);
  EXPECT_EQ(0, rate.bytes_per_second());
}

TEST(LaneRateTest, LooksAgainWhenTheExcessHasDrained) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  const int64_t max = rate.held_max();
  EXPECT_LE(rate.RetryAfterNs(max, max), rate.RetryAfterNs(max + 1'000'000, max));
  EXPECT_GE(10 * kMillisecond, rate.RetryAfterNs(int64_t{1} << 40, max)) << "never for long";
  EXPECT_LT(0, rate.RetryAfterNs(max, max));
}

// A lane's part of what is under way may be far less than what it could hold.
TEST(LaneRateTest, WaitsForTheExcessOverTheBoundThatHolds) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 100'000'000, 50, &now, &acked);
  ASSERT_LT(150'000, rate.held_max());
  EXPECT_NEAR(kMillisecond, static_cast<double>(rate.RetryAfterNs(150'000, 50'000)), 0.2 * kMillisecond);
}

// A full socket takes a chunk for as long as it drains: the looks are far apart, and the lane was busy all the time.
TEST(LaneRateTest, LearnsThatAFlowHasBecomeSlowFromLooksFarApart) {
  LaneRate rate(kChunk);
  int64_t now = kSecond;
  uint64_t acked = 0;
  Drain(&rate, 1'000'000'000, 50, &now, &acked);
  for (int look = 0; look < 10; ++look) {
    now += 100 * kMillisecond;
    acked += 1'000'000;
    rate.Sample(now, acked + 500'000, 500'000, true);
  }
  EXPECT_NEAR(1e7, static_cast<double>(rate.bytes_per_second()), 2e6);
}

}  // namespace
}  // namespace tcpx
