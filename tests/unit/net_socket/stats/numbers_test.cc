#include "net_socket/stats/numbers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "net_socket/stats/totals.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/stats/sample_snapshot.h"

namespace tcpx {
namespace {

uint64_t Of(const ConnectionNumbers& numbers, Blocked kind) { return numbers.blocked[static_cast<size_t>(kind)]; }

TEST(LogHistogramTest, ValuesLieInTheirPowerOfTwo) {
  EXPECT_EQ(0, LogBucket(0));
  EXPECT_EQ(0, LogBucket(1));
  EXPECT_EQ(1, LogBucket(2));
  EXPECT_EQ(2, LogBucket(3));
  EXPECT_EQ(10, LogBucket(1024));
  EXPECT_EQ(11, LogBucket(1025));
  EXPECT_EQ(kLogBuckets - 1, LogBucket(~uint64_t{0}));
}

TEST(LogHistogramTest, QuantilesAreUpperBounds) {
  LogHistogram histogram;
  EXPECT_EQ(0u, histogram.Read().Quantile(0.5));
  for (int i = 0; i < 98; ++i) histogram.Add(100);
  histogram.Add(5000);
  histogram.Add(5000);
  EXPECT_EQ(128u, histogram.Read().Quantile(0.5));
  EXPECT_EQ(8192u, histogram.Read().Quantile(0.99));
  EXPECT_EQ(98u * 100 + 10000, histogram.Read().sum);
}

TEST(TcpNumbersTest, AnotherSocketDoesNotTakeBackWhatWasCounted) {
  LaneNumbers lane;
  TcpNumbers now;
  now.busy_us = 100;
  now.retransmits = 5;
  AddTcpNumbers(now, &lane);
  now.busy_us = 150;
  AddTcpNumbers(now, &lane);
  EXPECT_EQ(150u, lane.tcp.busy_us);
  TcpNumbers other;
  other.busy_us = 20;
  other.retransmits = 1;
  other.rtt_us = 33;
  AddTcpNumbers(other, &lane);
  EXPECT_EQ(170u, lane.tcp.busy_us);
  EXPECT_EQ(6u, lane.tcp.retransmits);
  EXPECT_EQ(33u, lane.tcp.rtt_us);
}

TEST(TcpNumbersTest, AnotherSocketIsKnownByItsCookie) {
  LaneNumbers lane;
  TcpNumbers now;
  now.cookie = 1;
  now.busy_us = 100;
  now.window_limited_us = 60;
  now.retransmits = 5;
  AddTcpNumbers(now, &lane);
  now.cookie = 2;
  now.busy_us = 300;
  now.window_limited_us = 70;
  AddTcpNumbers(now, &lane);
  EXPECT_EQ(400u, lane.tcp.busy_us);
  EXPECT_EQ(130u, lane.tcp.window_limited_us);
  EXPECT_EQ(10u, lane.tcp.retransmits);
}

TEST(TcpNumbersTest, CookiesComeFromTheKernel) {
  const TcpPair pair = MakeTcpPair();
  LaneNumbers a;
  LaneNumbers b;
  ReadTcpNumbers(pair.a.get(), &a);
  ReadTcpNumbers(pair.b.get(), &b);
  if (a.socket.cookie == 0) GTEST_SKIP() << "this kernel has no SO_COOKIE";
  EXPECT_NE(a.socket.cookie, b.socket.cookie);
}

TEST(TcpNumbersTest, ComeFromTheKernel) {
  const TcpPair pair = MakeTcpPair();
  char bytes[1000] = {};
  ASSERT_EQ(1000, write(pair.a.get(), bytes, sizeof(bytes)));
  LaneNumbers lane;
  ReadTcpNumbers(pair.a.get(), &lane);
  EXPECT_TRUE(lane.read);
  EXPECT_GT(lane.tcp.rtt_us, 0u);
  EXPECT_FALSE(lane.tcp.congestion.empty());
}

TEST(AttributeTest, SharesOutTheTimeInWhichBytesMoved) {
  ConnectionNumbers numbers = SampleConnection("peer", true, 2);
  numbers.blocked = {};
  numbers.waits = {5, 6, 7, 1000, 8};
  Attribute({1000, 100}, &numbers);  // Its lanes were busy for 6 s, for 2 of them with the peer's window closed.
  EXPECT_EQ(5u, Of(numbers, Blocked::kNcclIdle));
  EXPECT_EQ(6u, Of(numbers, Blocked::kPeerNotPosted));
  EXPECT_EQ(7u, Of(numbers, Blocked::kPeerSilent));
  EXPECT_EQ(8u, Of(numbers, Blocked::kNcclUntested));
  EXPECT_EQ(100u, Of(numbers, Blocked::kHereNoCpu));
  EXPECT_EQ(300u, Of(numbers, Blocked::kPeerWindow));
  EXPECT_EQ(600u, Of(numbers, Blocked::kNetworkPath));
}

// TCP had bytes for 100 ns, our threads ran for 200; for the rest nobody had called.
TEST(AttributeTest, WhatTcpDidNotHoldIsNotThePaths) {
  ConnectionNumbers numbers;
  numbers.sends = true;
  numbers.lanes.resize(2);
  numbers.lanes[0].tcp.busy_us = 60;
  numbers.lanes[1].tcp.busy_us = 40;
  numbers.waits.moving_ns = 1000000;
  Attribute({200000, 0}, &numbers);
  EXPECT_EQ(100000u, Of(numbers, Blocked::kNetworkPath));
  EXPECT_EQ(200000u, Of(numbers, Blocked::kHereCopying));
  EXPECT_EQ(700000u, Of(numbers, Blocked::kNcclUntested));
  numbers.waits.uncalled_ns = 500000;
  Attribute({900000, 0}, &numbers);  // They ran for others.
  EXPECT_EQ(1200000u, Of(numbers, Blocked::kNcclUntested));
  numbers.lanes[1].lost = true;  // Its socket is gone, and what the path does no socket tells.
  numbers.waits.moving_ns = 1500000;
  Attribute({200000, 0}, &numbers);
  EXPECT_EQ(600000u, Of(numbers, Blocked::kNetworkPath));
}

TEST(AttributeTest, WhatWaitedForACallIsThisHosts) {
  ConnectionNumbers numbers;
  numbers.waits.uncalled_ns = 1000;
  numbers.waits.moving_ns = 50;
  Attribute({0, 300}, &numbers);
  EXPECT_EQ(300u, Of(numbers, Blocked::kHereNoCpu));
  EXPECT_EQ(700u, Of(numbers, Blocked::kNcclUntested));
  EXPECT_EQ(50u, Of(numbers, Blocked::kNetworkPath));
}

TEST(AttributeTest, CountsOnceAndNeverBackwards) {
  ConnectionNumbers numbers;
  numbers.waits.moving_ns = 1000;
  Attribute({}, &numbers);
  numbers.waits.moving_ns = 400;  // It was guessed too high.
  numbers.waits.idle_ns = 600;
  Attribute({}, &numbers);
  numbers.waits.moving_ns = 1100;
  Attribute({}, &numbers);
  EXPECT_EQ(1100u, Of(numbers, Blocked::kNetworkPath));
  EXPECT_EQ(600u, Of(numbers, Blocked::kNcclIdle));
}

TEST(TotalsTest, ClosedConnectionsKeepTheirCountsAndLoseTheirGauges) {
  Totals totals;
  totals.Add(SampleConnection("a", true), true);
  totals.Add(SampleConnection("a", true), false);
  const DirectionTotals& sum = totals.map().at({"eth0", "a"})[1];
  EXPECT_EQ(2u, sum.opened);
  EXPECT_EQ(1u, sum.open);
  EXPECT_EQ(40u, sum.messages[1]);
  EXPECT_EQ(3u, sum.lanes.begin()->second);
}

TEST(TableTest, HasARowForEachPeerAndDirection) {
  EXPECT_TRUE(StatsTable(Totals()).empty());
  Totals totals;
  totals.Add(SampleConnection("a", true), true);
  totals.Add(SampleConnection("a", false), true);
  totals.Add(SampleConnection("b", true), true);
  const auto lines = StatsTable(totals);
  ASSERT_EQ(4u, lines.size());
  std::set<size_t> lengths;
  for (const std::string& line : lines) lengths.insert(line.size());
  EXPECT_EQ(1u, lengths.size()) << absl::StrJoin(lines, "\n");
}

TEST(TableTest, IsBounded) {
  Totals totals;
  for (int i = 0; i < 100; ++i) totals.Add(SampleConnection(absl::StrCat("host", i), true), true);
  const auto lines = StatsTable(totals);
  EXPECT_EQ(kTableRowsMax + 2, lines.size());
  EXPECT_TRUE(absl::StrContains(lines.back(), "36 rows more"));
}

}  // namespace
}  // namespace tcpx
