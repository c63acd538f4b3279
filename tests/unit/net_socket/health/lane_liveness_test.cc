// When a lane counts as dead, and when not: a peer that does not read for minutes is healthy.
#include "net_socket/health/lane_liveness.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "common/clock.h"
#include "common/fd.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

constexpr int64_t kTimeout = 30 * kSecond;
constexpr int64_t kInterval = 5 * kSecond;

// Bytes are in flight, and nobody answers.
LaneTcpInfo Swallowed() {
  LaneTcpInfo lane;
  lane.bytes_acked = 1000;
  lane.held_bytes = 5000;
  lane.segments_flying = 3;
  lane.window_bytes = 65536;
  return lane;
}

// A series of looks, `kInterval` apart, from `start` on. When the lane was found dead; -1: never.
struct Looks {
  int64_t start = 1000 * kSecond;
  int count = 200;
  // What the kernel says at a look, so many nanoseconds after the first.
  LaneTcpInfo (*at)(int64_t since_ns);

  int64_t DeadAfter() const {
    LaneLiveness liveness;
    for (int i = 0; i < count; ++i) {
      if (liveness.Dead(at(i * kInterval), start + i * kInterval, kTimeout)) return i * kInterval;
    }
    return -1;
  }
};

LaneTcpInfo Silent(int64_t since_ns) {
  LaneTcpInfo lane = Swallowed();
  lane.last_ack_ms = static_cast<uint32_t>(since_ns / kMillisecond);
  return lane;
}

TEST(LaneLivenessTest, ASwallowedFlowIsDeadAfterTheTimeout) {
  Looks looks;
  looks.at = &Silent;
  EXPECT_EQ(kTimeout, looks.DeadAfter());
}

TEST(LaneLivenessTest, TheTimeBeginsWithTheBytesAndNotWithTheLastAcknowledgement) {
  Looks looks;
  looks.at = [](int64_t since_ns) { return Silent(since_ns + 3600 * kSecond); };  // an hour of nothing before
  EXPECT_EQ(kTimeout, looks.DeadAfter());
}

TEST(LaneLivenessTest, OneAcknowledgedByteIsLife) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneTcpInfo lane = Silent(since_ns);
    lane.bytes_acked = static_cast<uint64_t>(since_ns / (20 * kSecond));
    return lane;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

TEST(LaneLivenessTest, AnAnswerWithoutProgressIsLife) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneTcpInfo lane = Silent(since_ns % (20 * kSecond));
    lane.bytes_acked = 1000;
    return lane;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

// Probes up to two minutes apart, each answered.
TEST(LaneLivenessTest, AClosedWindowIsNoDeath) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneTcpInfo lane = Silent(since_ns % (120 * kSecond));
    lane.window_bytes = 0;
    lane.segments_flying = 0;
    lane.probes = since_ns % (120 * kSecond) < 2 * kInterval ? 0 : 1;
    return lane;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

// The peer took its window back with segments in flight: they are sent again as probes.
TEST(LaneLivenessTest, AShrunkWindowIsNoDeath) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneTcpInfo lane = Silent(since_ns % (120 * kSecond));
    lane.window_bytes = 0;
    lane.rto_ms = 120 * 1000;
    return lane;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

// Sent again after 10, 20, 40 and 80 s. The third silence is over 70 s after the first of them.
TEST(LaneLivenessTest, AShrunkWindowWithoutAnAnswerIsDeath) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneTcpInfo lane = Silent(since_ns);
    lane.window_bytes = 0;
    lane.rto_ms = 40 * 1000;
    return lane;
  };
  EXPECT_EQ(70 * kSecond, looks.DeadAfter());
}

TEST(LaneLivenessTest, AClosedWindowWhoseProbesGoUnansweredIsDeath) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneTcpInfo lane = Silent(since_ns);
    lane.window_bytes = 0;
    lane.segments_flying = 0;
    lane.probes = static_cast<uint32_t>(since_ns / (20 * kSecond));
    return lane;
  };
  EXPECT_EQ(60 * kSecond, looks.DeadAfter());
}

TEST(LaneLivenessTest, ALaneThatHoldsNothingIsNeverDead) {
  Looks looks;
  looks.at = [](int64_t since_ns) {
    LaneTcpInfo lane = Silent(since_ns);
    lane.held_bytes = 0;
    return lane;
  };
  EXPECT_EQ(-1, looks.DeadAfter());
}

// The host slept, or the clock jumped: two looks far apart are no proof.
TEST(LaneLivenessTest, AJumpOfTheClockKillsNothing) {
  LaneLiveness liveness;
  EXPECT_FALSE(liveness.Dead(Silent(0), kSecond, kTimeout));
  EXPECT_FALSE(liveness.Dead(Silent(3600 * kSecond), 3601 * kSecond, kTimeout));
  EXPECT_FALSE(liveness.Dead(Silent(3605 * kSecond), 3606 * kSecond, kTimeout));
}

TEST(LaneLivenessTest, RestBeginsAnew) {
  LaneLiveness liveness;
  for (int64_t now = 0; now < 29 * kSecond; now += kInterval) EXPECT_FALSE(liveness.Dead(Silent(now), now, kTimeout));
  liveness.Forget();
  for (int64_t now = 29 * kSecond; now < 58 * kSecond; now += kInterval) {
    EXPECT_FALSE(liveness.Dead(Silent(now), now, kTimeout)) << now;
  }
}

TEST(LaneLivenessTest, TheKernelTellsOfAClosedWindow) {
  TcpPair pair = MakeTcpPair(16384);
  LaneTcpInfo lane;
  ASSERT_TRUE(ReadLaneTcpInfo(pair.a.get(), &lane));
  EXPECT_EQ(0u, lane.held_bytes);
  EXPECT_FALSE(lane.window_closed());
  FillSocket(pair.a.get());
  ASSERT_TRUE(ReadLaneTcpInfo(pair.a.get(), &lane));
  EXPECT_GT(lane.held_bytes, 0u);
  EXPECT_TRUE(lane.window_closed()) << lane.window_bytes << " bytes, " << lane.segments_flying << " segments";
  EXPECT_TRUE(absl::StrContains(DescribeTcpInfo(lane), "window is closed")) << DescribeTcpInfo(lane);
}

TEST(LaneLivenessTest, WhatIsNoSocketTellsNothing) {
  LaneTcpInfo lane;
  EXPECT_FALSE(ReadLaneTcpInfo(-1, &lane));
}

}  // namespace
}  // namespace tcpx
