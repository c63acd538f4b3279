#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/clock.h"
#include "net_socket/comm/end_numbers.h"

namespace tcpx {
namespace {

uint64_t All(const WaitNumbers& waits) {
  return waits.idle_ns + waits.no_credit_ns + waits.unheard_ns + waits.moving_ns + waits.untested_ns +
         waits.uncalled_ns;
}

Flight UnderWay(bool begun = true) {
  Flight flight;
  flight.messages = 1;
  flight.total_known = begun;
  return flight;
}

// At a first look.
WaitNumbers Waits(const TransferTimes& times, int64_t now_ns, const Flight& flight) {
  OpenWait open;
  return times.WaitsUntil(now_ns, flight, false, &open);
}

// At least so long passes.
void Pass() { usleep(2000); }
constexpr uint64_t kPassNs = 2000000;

TEST(TransferTimesTest, EveryMomentCountsOnce) {
  const int64_t start = MonotonicNanos();
  TransferTimes times(false, start);
  for (int i = 0; i < 5; ++i) {
    Pass();
    const int64_t begun = times.Begin(true);
    Pass();
    const int64_t sent = MonotonicNanos();
    Pass();
    times.End({begun, 0, sent, 100, false});
  }
  const int64_t now = MonotonicNanos();
  const WaitNumbers waits = Waits(times, now, Flight());
  EXPECT_EQ(static_cast<uint64_t>(now - start), All(waits));
  EXPECT_GE(waits.idle_ns, 5 * kPassNs);
  EXPECT_GE(waits.moving_ns, 5 * kPassNs);
  EXPECT_GE(waits.untested_ns, 5 * kPassNs);
  EXPECT_EQ(0u, waits.unheard_ns + waits.no_credit_ns);
  EXPECT_EQ(5u, times.sizes(false).count());
  EXPECT_EQ(5u, times.durations(false).count());
  EXPECT_EQ(0u, times.durations(true).count());
  EXPECT_GE(times.durations(false).sum, 10 * kPassNs);
}

TEST(TransferTimesTest, ARefusedSendWaitsForThePeer) {
  TransferTimes times(false, MonotonicNanos());
  times.Refused();
  Pass();
  times.Refused();
  EXPECT_GE(Waits(times, MonotonicNanos(), Flight()).no_credit_ns, kPassNs);
  times.End({times.Begin(true), 0, 0, 1, true});
  EXPECT_GE(Waits(times, MonotonicNanos(), Flight()).no_credit_ns, kPassNs);
}

TEST(TransferTimesTest, AReceiverWaitsForThePeerUntilTheFirstBytes) {
  TransferTimes times(true, MonotonicNanos());
  const int64_t begun = times.Begin(true);
  Pass();
  const int64_t first = MonotonicNanos();
  Pass();
  times.End({begun, first, 0, 1 << 20, true});
  const WaitNumbers waits = Waits(times, MonotonicNanos(), Flight());
  EXPECT_GE(waits.unheard_ns, kPassNs);
  EXPECT_GE(waits.moving_ns, kPassNs);
  EXPECT_EQ(1u, times.sizes(true).buckets[20]);
}

TEST(TransferTimesTest, WhatIsNotOverIsGuessed) {
  TransferTimes sends(false, MonotonicNanos());
  TransferTimes receives(true, MonotonicNanos());
  (void)sends.Begin(true);
  (void)receives.Begin(true);
  Pass();
  const int64_t now = MonotonicNanos();
  EXPECT_GE(Waits(sends, now, UnderWay()).moving_ns, kPassNs);
  EXPECT_GE(Waits(sends, now, Flight()).untested_ns, kPassNs);
  EXPECT_GE(Waits(receives, now, UnderWay(false)).unheard_ns, kPassNs);
  EXPECT_GE(Waits(receives, now, UnderWay(true)).moving_ns, kPassNs);
}

// All that was waited for was not waited for NCCL, though all is done now.
TEST(TransferTimesTest, AGuessIsOfTheTimeAfterTheLatestLook) {
  TransferTimes sends(false, MonotonicNanos());
  const int64_t begun = sends.Begin(true);
  OpenWait open;
  EXPECT_EQ(uint64_t{10 * kSecond}, sends.WaitsUntil(begun + 10 * kSecond, UnderWay(), false, &open).moving_ns);
  const WaitNumbers waits = sends.WaitsUntil(begun + 11 * kSecond, Flight(), false, &open);
  EXPECT_EQ(uint64_t{10 * kSecond}, waits.moving_ns);
  EXPECT_EQ(uint64_t{kSecond}, waits.untested_ns);
  sends.End({begun, 0, 0, 1, true});
  EXPECT_LT(sends.WaitsUntil(MonotonicNanos(), Flight(), false, &open).moving_ns, uint64_t{10 * kSecond});
}

// What the end of a transfer says came late, because NCCL read it late, stays NCCL's.
TEST(TransferTimesTest, WhatNobodyReadIsNotThePeers) {
  const int64_t start = MonotonicNanos();
  TransferTimes times(true, start);
  const int64_t begun = times.Begin(true);
  OpenWait open;
  WaitNumbers waits = times.WaitsUntil(begun + kMillisecond, UnderWay(false), false, &open);
  waits = times.WaitsUntil(begun + 3 * kMillisecond, UnderWay(false), true, &open);
  EXPECT_EQ(uint64_t{kMillisecond}, waits.unheard_ns);
  EXPECT_EQ(uint64_t{2 * kMillisecond}, waits.uncalled_ns);
  while (MonotonicNanos() < begun + 5 * kMillisecond) Pass();
  const int64_t first = MonotonicNanos();
  times.Called();
  times.End({begun, first, 0, 1 << 20, true});
  const int64_t now = MonotonicNanos();
  waits = times.WaitsUntil(now, Flight(), false, &open);
  EXPECT_EQ(uint64_t{2 * kMillisecond}, waits.uncalled_ns);
  EXPECT_EQ(static_cast<uint64_t>(first - begun - 2 * kMillisecond), waits.unheard_ns);
  EXPECT_EQ(static_cast<uint64_t>(now - start), All(waits));
  EXPECT_EQ(1u, open.calls);
}

TEST(TransferTimesTest, ALookMeanwhileCountsEveryMomentOnce) {
  const int64_t start = MonotonicNanos();
  TransferTimes times(false, start);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop) {
      const int64_t begun = times.Begin(true);
      while (MonotonicNanos() < begun + 20 * kMicrosecond) {
      }
      times.End({begun, 0, 0, 8, true});
    }
  });
  for (int i = 0; i < 100000; ++i) {
    OpenWait open;
    const int64_t before = MonotonicNanos();
    const WaitNumbers waits = times.WaitsUntil(before, Flight(), false, &open);
    const int64_t now = MonotonicNanos();
    if (open.from_ns == 0) continue;  // The writer lost its CPU in the middle of a change.
    ASSERT_LE(All(waits), static_cast<uint64_t>(now - start));
    ASSERT_GE(All(waits), static_cast<uint64_t>(before - start));
  }
  stop = true;
  writer.join();
}

TEST(TransferTimesTest, OneInSoManyIsTimedUnlessAllAreToBe) {
  const int64_t start = MonotonicNanos();
  TransferTimes times(false, start);
  const unsigned messages = 4 * TransferTimes::kTimedEvery;
  for (unsigned i = 0; i < messages; ++i) times.End({times.Begin(false), 0, 0, 8, false});
  EXPECT_EQ(messages, times.sizes(false).count());
  EXPECT_EQ(4u, times.durations(false).count());
  const int64_t now = MonotonicNanos();
  EXPECT_EQ(static_cast<uint64_t>(now - start), All(Waits(times, now, Flight())));
}

}  // namespace
}  // namespace tcpx
