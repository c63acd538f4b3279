// Which lanes count as busy, and what they share.
#include "net_socket/send/busy_lanes.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "net_socket/send/tuning.h"

namespace tcpx {
namespace {

constexpr int64_t kSpan = tuning::kBusySpanNs;
constexpr int64_t kMiB = 1 << 20;

TEST(BusyLanesTest, ALaneCountsOnceAndUntilTheNextSpanIsOver) {
  BusyLanes busy;
  std::vector<uint32_t> spans(100, 0);
  EXPECT_EQ(0, busy.Count(10 * kSpan));
  for (int times = 0; times < 3; ++times) {
    for (uint32_t& span : spans) busy.Note(10 * kSpan, &span);
  }
  EXPECT_EQ(100, busy.Count(10 * kSpan));
  EXPECT_EQ(100, busy.Count(12 * kSpan - 1));
  EXPECT_EQ(0, busy.Count(12 * kSpan));
  EXPECT_EQ(0, busy.Count(1000 * kSpan));
}

// Most lanes rest, one goes on: soon it shares with nobody.
TEST(BusyLanesTest, ThoseThatRestAreForgotten) {
  BusyLanes busy;
  std::vector<uint32_t> spans(4000, 0);
  for (uint32_t& span : spans) busy.Note(10 * kSpan, &span);
  busy.Note(11 * kSpan, &spans[0]);
  EXPECT_EQ(4000, busy.Count(11 * kSpan)) << "a span has just begun";
  busy.Note(12 * kSpan, &spans[0]);
  EXPECT_EQ(1, busy.Count(12 * kSpan));
}

TEST(BusyLanesTest, AnOldReadingOfTheClockCountsNothing) {
  BusyLanes busy;
  uint32_t early = 0, late = 0;
  busy.Note(11 * kSpan, &late);
  busy.Note(10 * kSpan, &early);
  EXPECT_EQ(1, busy.Count(11 * kSpan));
}

TEST(BusyLanesTest, LanesOfManyThreadsAreAllCounted) {
  BusyLanes busy;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&busy] {
      for (int lane = 0; lane < 10000; ++lane) {
        uint32_t span = 0;
        busy.Note(5 * kSpan, &span);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(40000, busy.Count(5 * kSpan));
}

TEST(BusyLanesTest, ManyShareWhatMayWait) {
  EXPECT_EQ(-1, BusyLanes::UnsentMax(0));
  EXPECT_EQ(-1, BusyLanes::UnsentMax(64));
  EXPECT_EQ(256 * kMiB / 65, BusyLanes::UnsentMax(65));
  EXPECT_EQ(kMiB, BusyLanes::UnsentMax(256));
  EXPECT_EQ(64 << 10, BusyLanes::UnsentMax(4096));
  EXPECT_EQ(64 << 10, BusyLanes::UnsentMax(64000));
}

}  // namespace
}  // namespace tcpx
