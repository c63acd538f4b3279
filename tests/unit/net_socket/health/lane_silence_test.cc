// When a lane is suspected, and when not: a peer that does not read is never.
#include <gtest/gtest.h>

#include <utility>

#include "common/clock.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

// As the kernel tells of bytes that were sent again and again since `silent_ms`.
LaneTcpInfo Swallowed(int64_t silent_ms) {
  LaneTcpInfo lane;
  lane.bytes_acked = 1000;
  lane.held_bytes = 5000;
  lane.segments_flying = 3;
  lane.window_bytes = 65536;
  lane.last_ack_ms = static_cast<uint32_t>(silent_ms);
  lane.resent = silent_ms < 200 ? 0 : silent_ms < 600 ? 1 : 2;
  return lane;
}

// The first look, in milliseconds, at which the lane is suspected; -1: none within a minute.
template <typename At>
int64_t SuspectedAfter(LaneSilence* silence, int64_t start_ns, At at) {
  for (int64_t ms = 0; ms <= 60000; ms += tuning::kLookNs / kMillisecond) {
    if (silence->Suspects(at(ms), start_ns + ms * kMillisecond)) return ms;
  }
  return -1;
}

template <typename At>
int64_t SuspectedAfter(At at) {
  LaneSilence silence;
  return SuspectedAfter(&silence, 1000 * kSecond, at);
}

TEST(LaneSilenceTest, ASwallowedFlowIsSuspectedAfterTwoRetransmissions) { EXPECT_EQ(750, SuspectedAfter(&Swallowed)); }

TEST(LaneSilenceTest, OneWhoseBytesAreAcknowledgedIsNot) {
  EXPECT_EQ(-1, SuspectedAfter([](int64_t ms) {
    LaneTcpInfo lane = Swallowed(ms);
    lane.bytes_acked = static_cast<uint64_t>(ms);
    return lane;
  }));
}

// Its window is shut, and it answers the probes of that.
TEST(LaneSilenceTest, APeerThatDoesNotReadIsNot) {
  EXPECT_EQ(-1, SuspectedAfter([](int64_t ms) {
    LaneTcpInfo lane = Swallowed(ms);
    lane.window_bytes = 0;
    lane.segments_flying = lane.resent = 0;
    lane.probes = 1;
    lane.last_ack_ms = static_cast<uint32_t>(ms % (tuning::kProbeNs / kMillisecond));
    return lane;
  }));
}

TEST(LaneSilenceTest, AShutWindowWhoseProbesAreNotAnsweredIs) {
  EXPECT_EQ(750, SuspectedAfter([](int64_t ms) {
              LaneTcpInfo lane = Swallowed(ms);
              lane.window_bytes = 0;
              lane.segments_flying = 0;
              lane.probes = std::exchange(lane.resent, 0);
              return lane;
            }));
}

// A flow that was forgotten while its window was shut.
TEST(LaneSilenceTest, OneProbeWhoseAnswerIsOverdueIsEnough) {
  const auto probed = [](uint32_t rtt_us) {
    return [rtt_us](int64_t ms) {
      LaneTcpInfo lane = Swallowed(ms);
      lane.window_bytes = lane.segments_flying = lane.resent = 0;
      lane.probes = ms >= 1000 ? 1 : 0;
      lane.rtt_us = rtt_us;
      return lane;
    };
  };
  EXPECT_EQ(1500, SuspectedAfter(probed(200)));
  EXPECT_EQ(1750, SuspectedAfter(probed(400'000))) << "on a long path it may still come";
}

// A peer short of memory drops what comes, and says so.
TEST(LaneSilenceTest, APeerThatAnswersIsNot) {
  EXPECT_EQ(-1, SuspectedAfter([](int64_t ms) {
    LaneTcpInfo lane = Swallowed(ms);
    lane.last_ack_ms = 300;
    return lane;
  }));
}

TEST(LaneSilenceTest, NothingHeldIsNoSilence) {
  EXPECT_EQ(-1, SuspectedAfter([](int64_t ms) {
    LaneTcpInfo lane = Swallowed(ms);
    lane.held_bytes = 0;
    return lane;
  }));
}

TEST(LaneSilenceTest, OneThatWasMovedWithoutEffectIsSuspectedLater) {
  LaneSilence silence;
  EXPECT_EQ(750, SuspectedAfter(&silence, 1000 * kSecond, &Swallowed));
  silence.Moved(1001 * kSecond);
  EXPECT_EQ(750, SuspectedAfter(&silence, 1002 * kSecond, &Swallowed));
  silence.Moved(1003 * kSecond);
  EXPECT_EQ(1000, SuspectedAfter(&silence, 1004 * kSecond, &Swallowed));
  silence.Moved(1005 * kSecond);
  EXPECT_EQ(2000, SuspectedAfter(&silence, 1006 * kSecond, &Swallowed));
  LaneTcpInfo carries = Swallowed(0);
  carries.bytes_acked += 1;
  EXPECT_FALSE(silence.Suspects(carries, 1010 * kSecond)) << "the new socket has carried something";
  silence.Forget();
  EXPECT_EQ(750, SuspectedAfter(&silence, 1011 * kSecond, &Swallowed));
  silence.Moved(2000 * kSecond);
  EXPECT_EQ(750, SuspectedAfter(&silence, 2001 * kSecond, &Swallowed));
}

}  // namespace
}  // namespace tcpx
