// A stall is reported once, and what moves never.
#include "net_socket/message/flight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/clock.h"
#include "net_socket/message/posted_receive.h"

namespace tcpx {
namespace {

constexpr int64_t kLimit = 10 * kSecond;

Flight At(uint64_t sequence, uint64_t bytes_done) {
  Flight flight;
  flight.messages = 1;
  flight.sequence = sequence;
  flight.bytes_done = bytes_done;
  flight.bytes_total = 1000;
  return flight;
}

int Tellings(StallWatch* watch, int64_t from_ns, int64_t to_ns, const Flight& flight, int64_t limit = kLimit) {
  int count = 0;
  for (int64_t now = from_ns; now <= to_ns; now += kSecond) count += watch->Stalled(flight, now, limit) ? 1 : 0;
  return count;
}

TEST(FlightTest, AStallIsReportedOnce) {
  StallWatch watch;
  EXPECT_EQ(0, Tellings(&watch, 100 * kSecond, 109 * kSecond, At(7, 10)));
  EXPECT_EQ(1, Tellings(&watch, 110 * kSecond, 1000 * kSecond, At(7, 10)));
  EXPECT_EQ(100 * kSecond, watch.since_ns());
}

TEST(FlightTest, TheNextStallIsReportedToo) {
  StallWatch watch;
  EXPECT_EQ(1, Tellings(&watch, 0 + kSecond, 60 * kSecond, At(7, 10)));
  EXPECT_EQ(1, Tellings(&watch, 61 * kSecond, 120 * kSecond, At(7, 11)));
  EXPECT_EQ(1, Tellings(&watch, 121 * kSecond, 180 * kSecond, At(8, 11)));
}

// Housekeeping looks four times within the limit. Wherever its looks fall, a wait is reported by then.
TEST(FlightTest, AStallIsReportedWhereverTheLooksFall) {
  constexpr int64_t kEvery = kLimit / 4;
  for (int64_t begins = 0; begins < kEvery; begins += kEvery / 50) {
    StallWatch watch;
    int told = 0;
    for (int64_t now = kSecond; now <= kSecond + begins + kLimit + 2 * kEvery; now += kEvery) {
      told += watch.Stalled(At(7, now < kSecond + begins ? static_cast<uint64_t>(now) : 0), now, kLimit) ? 1 : 0;
    }
    EXPECT_EQ(1, told) << begins;
  }
}

// A peer that is stopped: its kernel takes a little more when it answers probes, which come at doubling intervals.
TEST(FlightTest, ProgressAtDoublingIntervalsHidesNoStandstill) {
  constexpr int64_t kEvery = kLimit / 4;
  StallWatch watch;
  std::vector<uint64_t> told_at;
  for (int64_t now = kSecond; now <= kSecond + 16 * kLimit; now += kEvery) {
    uint64_t taken = 0;
    for (int64_t probe = kLimit / 5; probe <= now - kSecond; probe += std::max(probe, kEvery)) ++taken;
    if (watch.Stalled(At(7, taken), now, kLimit)) told_at.push_back(taken);
  }
  // After those at 0.2, 0.45 and 0.9 limits each wait is longer than a limit.
  EXPECT_EQ((std::vector<uint64_t>{4, 5, 6, 7}), told_at);
}

TEST(FlightTest, NothingUnderWayIsNoStall) {
  StallWatch watch;
  EXPECT_EQ(0, Tellings(&watch, kSecond, 60 * kSecond, Flight()));
  EXPECT_EQ(0, watch.since_ns());
}

TEST(FlightTest, ALimitOfZeroIsNever) {
  StallWatch watch;
  EXPECT_EQ(0, Tellings(&watch, kSecond, 60 * kSecond, At(1, 1), 0));
  EXPECT_EQ(kSecond, watch.since_ns());
}

TEST(FlightTest, Words) {
  EXPECT_EQ("", DescribeFlight(Flight()));
  EXPECT_EQ("message 7, 10 of 1000 bytes", DescribeFlight(At(7, 10)));
  Flight flight = At(7, 0);
  flight.messages = 3;
  flight.total_known = false;
  EXPECT_EQ("message 7, 0 of at most 1000 bytes, and 2 more", DescribeFlight(flight));
}

TEST(FlightTest, ReceivesThatHaveNotLanded) {
  PostedReceiveTable table(4);
  char buffer[100];
  EXPECT_EQ(0, table.FlightNow().messages);
  for (int i = 0; i < 3; ++i) table.Post(buffer, sizeof(buffer), 0);
  FrameHeader chunk;
  chunk.length = 10;
  chunk.message_bytes = 10;
  PostedReceive* receive = nullptr;
  ASSERT_EQ(ClaimResult::kClaimed, table.Claim(chunk, &receive));
  ASSERT_TRUE(receive->Landed(chunk.length, chunk.message_bytes));
  chunk.sequence = 1;
  chunk.message_bytes = 40;
  ASSERT_EQ(ClaimResult::kClaimed, table.Claim(chunk, &receive));
  ASSERT_FALSE(receive->Landed(chunk.length, chunk.message_bytes));
  const Flight flight = table.FlightNow();
  EXPECT_EQ(2, flight.messages);
  EXPECT_EQ(1u, flight.sequence);
  EXPECT_EQ(10u, flight.bytes_done);
  EXPECT_EQ(40u, flight.bytes_total);
  EXPECT_TRUE(flight.total_known);
}

}  // namespace
}  // namespace tcpx
