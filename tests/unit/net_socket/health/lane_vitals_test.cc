// When a lane counts as dead, and when not: a peer that does not read for minutes is healthy.
#include "net_socket/health/lane_vitals.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "common/clock.h"
#include "common/fd.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

constexpr int64_t kTimeout = 30 * kSecond;
constexpr int64_t kInterval = 5 * kSecond;

// Bytes on their way, and nobody answers.
LaneVitals Swallowed() {
  LaneVitals vitals;
  vitals.bytes_acked = 1000;
  vitals.held_bytes = 5000;
  vitals.segments_flying = 3;
  vitals.window_bytes = 65536;
  return vitals;
}

// A series of looks, `kInterval` apart, from `start` on. When the lane was found dead; -1: never.
struct Looks {
  int64_t start = 1000 * kSecond;
  int count = 200;
  // What the kernel says at a look, so many nanoseconds after the first.
  LaneVitals (*at)(int64_t since_ns);

  int64_t DeadAfter() const {
    LaneLiveness liveness;
    for (int i = 0; i < count; ++i) {
      if (liveness.Dead(at(i * kInterval), start + i * kInterval, kTimeout)) return i * kInterval;
    }
    return -1;
  }
};

LaneVitals Silent(int64_t since_ns) {
  LaneVitals vitals = Swallowed();
  vitals.last_ack_ms = static_cast<uint32_t>(since_ns / kMillisecond);
  return vitals;
}

TEST(LaneVitalsTest, ASwallowedFlowIsDeadAfterTheTimeout) {
  Looks looks;
  looks.at = &Silent;
  EXPECT_EQ(kTimeout, looks.DeadAfter());
}

TEST(LaneVitalsTest, TheTimeBeginsWithTheBytesAndNotWithTheLastAcknowledgement) {
  Looks looks;
  looks.at = [](int64_t since_ns) { return Silent(since_ns + 3600 * kSecond); };  // an hour of nothing before
  EXPECT_EQ(kTimeout, looks.DeadAfter());
}

TEST(LaneVitalsTest, OneAcknowledgedByteIsLife) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneVitals vitals = Silent(since_ns);
    vitals.bytes_acked = static_cast<uint64_t>(since_ns / (20 * kSecond));
    return vitals;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

TEST(LaneVitalsTest, AnAnswerWithoutProgressIsLife) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneVitals vitals = Silent(since_ns % (20 * kSecond));
    vitals.bytes_acked = 1000;
    return vitals;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

// Probes up to two minutes apart, each answered.
TEST(LaneVitalsTest, AClosedWindowIsNoDeath) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneVitals vitals = Silent(since_ns % (120 * kSecond));
    vitals.window_bytes = 0;
    vitals.segments_flying = 0;
    vitals.probes = since_ns % (120 * kSecond) < 2 * kInterval ? 0 : 1;
    return vitals;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

// The peer took its window back with segments on their way: they are sent again as probes.
TEST(LaneVitalsTest, AShrunkWindowIsNoDeath) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneVitals vitals = Silent(since_ns % (120 * kSecond));
    vitals.window_bytes = 0;
    vitals.rto_ms = 120 * 1000;
    return vitals;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

// Sent again after 10, 20, 40 and 80 s. The third silence is over 70 s after the first of them.
TEST(LaneVitalsTest, AShrunkWindowWithoutAnAnswerIsDeath) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneVitals vitals = Silent(since_ns);
    vitals.window_bytes = 0;
    vitals.rto_ms = 40 * 1000;
    return vitals;
  };
  EXPECT_EQ(70 * kSecond, looks.DeadAfter());
}

TEST(LaneVitalsTest, AClosedWindowWhoseProbesGoUnansweredIsDeath) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneVitals vitals = Silent(since_ns);
    vitals.window_bytes = 0;
    vitals.segments_flying = 0;
    vitals.probes = static_cast<uint32_t>(since_ns / (20 * kSecond));
    return vitals;
  };
  EXPECT_EQ(60 * kSecond, looks.DeadAfter());
}

TEST(LaneVitalsTest, ALaneThatHoldsNothingIsNeverDead) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneVitals vitals = Silent(since_ns);
    vitals.held_bytes = 0;
    return vitals;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

// The host slept, or the clock jumped: two looks far apart are no proof.
TEST(LaneVitalsTest, AJumpOfTheClockKillsNothing) {
  LaneLiveness liveness;
  EXPECT_FALSE(liveness.Dead(Silent(0), kSecond, kTimeout));
  EXPECT_FALSE(liveness.Dead(Silent(3600 * kSecond), 3601 * kSecond, kTimeout));
  EXPECT_FALSE(liveness.Dead(Silent(3605 * kSecond), 3606 * kSecond, kTimeout));
}

TEST(LaneVitalsTest, RestBeginsAnew) {
  LaneLiveness liveness;
  for (int64_t now = 0; now < 29 * kSecond; now += kInterval) EXPECT_FALSE(liveness.Dead(Silent(now), now, kTimeout));
  liveness.Rest();
  for (int64_t now = 29 * kSecond; now < 58 * kSecond; now += kInterval) {
    EXPECT_FALSE(liveness.Dead(Silent(now), now, kTimeout)) << now;
  }
}

TEST(LaneVitalsTest, TheKernelTellsOfAClosedWindow) {
  TcpPair pair = MakeTcpPair(16384);
  LaneVitals vitals;
  ASSERT_TRUE(ReadLaneVitals(pair.a.get(), &vitals));
  EXPECT_EQ(0u, vitals.held_bytes);
  EXPECT_FALSE(vitals.window_closed());
  FillSocket(pair.a.get());
  ASSERT_TRUE(ReadLaneVitals(pair.a.get(), &vitals));
  EXPECT_GT(vitals.held_bytes, 0u);
  EXPECT_TRUE(vitals.window_closed()) << vitals.window_bytes << " bytes, " << vitals.segments_flying << " segments";
  EXPECT_TRUE(absl::StrContains(DescribeVitals(vitals), "window is closed")) << DescribeVitals(vitals);
}

TEST(LaneVitalsTest, WhatIsNoSocketTellsNothing) {
  LaneVitals vitals;
  EXPECT_FALSE(ReadLaneVitals(-1, &vitals));
}

}  // namespace
}  // namespace tcpx
