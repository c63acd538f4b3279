// Who is gone: each rule, by a clock of its own.
#include "net_socket/health/arbiter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "common/clock.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

using Finding = Arbiter::Finding;
using Loss = Arbiter::Loss;

constexpr int64_t kTimeoutNs = 30 * kSecond;
constexpr int64_t kAloneNs = 60 * kSecond;
constexpr int64_t kStartNs = 1000 * kSecond;

// A socket that was just given bytes.
LaneTcpInfo Holding(uint64_t acked = 100) {
  LaneTcpInfo info;
  info.bytes_acked = acked;
  info.held_bytes = 5000;
  info.segments_flying = 3;
  info.window_bytes = 65536;
  return info;
}
LaneTcpInfo Shut() {
  LaneTcpInfo info = Holding();
  info.window_bytes = 0;
  info.segments_flying = 0;
  return info;
}

ProcessEvidence Refusing(int64_t ns) {
  ProcessEvidence process;
  process.refused_ns = ns;
  return process;
}

TEST(ArbiterTest, NobodyIsGoneOfWhomASocketIsUp) {
  for (const bool in_order : {false, true}) {
    for (const int64_t refused_ns : {-kSecond, int64_t{0}, 3600 * kSecond}) {
      ProcessEvidence process = Refusing(refused_ns);
      process.up = true;
      process.in_order = in_order;
      process.lost_ns = 3600 * kSecond;
      EXPECT_FALSE(IsGone(process)) << in_order << ", refused for " << refused_ns;
    }
  }
}

TEST(ArbiterTest, ARefusalIsBelievedInTime) {
  EXPECT_FALSE(IsGone(Refusing(0)));
  EXPECT_FALSE(IsGone(Refusing(tuning::kRefusedNs - 1)));
  EXPECT_TRUE(IsGone(Refusing(tuning::kRefusedNs)));
  ProcessEvidence ended = Refusing(0);
  ended.in_order = true;
  EXPECT_TRUE(IsGone(ended)) << "its sockets have ended as those of a process that ends";
}

TEST(ArbiterTest, AnEndIsBelievedAfterSomeRoundTrips) {
  ProcessEvidence process;
  process.in_order = true;
  process.lost_ns = tuning::kEndedNs;
  EXPECT_TRUE(IsGone(process));
  process.rtt_ns = 100 * kMillisecond;
  EXPECT_FALSE(IsGone(process)) << "its dial may be under way";
  process.lost_ns = tuning::kEndedRoundTrips * process.rtt_ns;
  EXPECT_TRUE(IsGone(process));
  process.in_order = false;
  EXPECT_FALSE(IsGone(process)) << "resets alone say nothing of the process";
}

TEST(ArbiterTest, RefusalsCountFromTheLastSocketOn) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  EXPECT_FALSE(arbiter.Refused(false, kStartNs));
  EXPECT_FALSE(arbiter.Refused(true, kStartNs + 20 * kSecond)) << "a socket is up";
  EXPECT_FALSE(arbiter.Refused(false, kStartNs + 21 * kSecond));
  EXPECT_TRUE(arbiter.Refused(false, kStartNs + 22 * kSecond));
  arbiter.NotRefused();
  EXPECT_FALSE(arbiter.Refused(false, kStartNs + 30 * kSecond));
}

TEST(ArbiterTest, AConnectionWithoutALaneIsOverdueInTime) {
  const Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  EXPECT_FALSE(arbiter.Overdue(0, kStartNs)) << "a lane is up";
  EXPECT_FALSE(arbiter.Overdue(kStartNs, kStartNs + kAloneNs - 1));
  EXPECT_TRUE(arbiter.Overdue(kStartNs, kStartNs + kAloneNs));
}

// A lane that is given one socket after the other, `every` apart, and is looked at four times a second.
class Heals {
 public:
  Heals(Arbiter* arbiter, Loss how, int64_t every_ns) : arbiter_(arbiter), how_(how), every_ns_(every_ns) {}

  // Until then, or until it is found that nothing moves: when that was.
  int64_t Until(int64_t end_ns) {
    for (; now_ns_ < end_ns; now_ns_ += tuning::kLookNs) {
      if (now_ns_ >= next_ns_) {
        arbiter_->Lost(0, how_);
        arbiter_->Back(0, {position, true}, now_ns_);
        next_ns_ = now_ns_ + every_ns_;
        ++sockets;
      }
      warned += arbiter_->Warns(now_ns_) ? 1 : 0;
      position += moves;
      if (arbiter_->Look(0, Holding(), now_ns_) == Finding::kVain) return now_ns_;
    }
    return 0;
  }

  uint64_t position = 1000;
  uint64_t moves = 0;  // bytes at each look
  int warned = 0;
  int sockets = 0;

 private:
  Arbiter* const arbiter_;
  const Loss how_;
  const int64_t every_ns_;
  int64_t now_ns_ = kStartNs;
  int64_t next_ns_ = kStartNs;
};

TEST(ArbiterTest, OneThatHealsInVainFailsInTime) {
  for (const int64_t every_ns : {250 * kMillisecond, kSecond, 7 * kSecond}) {
    Arbiter arbiter(1, kTimeoutNs, kAloneNs);
    Heals heals(&arbiter, Loss::kDied, every_ns);
    const int64_t failed_ns = heals.Until(kStartNs + 3600 * kSecond);
    EXPECT_GE(failed_ns, kStartNs + kTimeoutNs);
    EXPECT_LE(failed_ns, kStartNs + kTimeoutNs + kSecond);
    EXPECT_EQ(1, heals.warned) << "a socket each " << every_ns << " ns";
    EXPECT_EQ(Vain::kReset, arbiter.vain());
  }
}

TEST(ArbiterTest, WhatASilentLaneMeetsHasItsName) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  EXPECT_EQ(Vain::kNone, arbiter.vain());
  Heals(&arbiter, Loss::kSilent, kSecond).Until(kStartNs + 5 * kSecond);
  EXPECT_EQ(Vain::kSilent, arbiter.vain());
  arbiter.Back(0, {2000, true}, kStartNs + 5 * kSecond);
  EXPECT_EQ(Vain::kNone, arbiter.vain()) << "a byte has moved";
}

TEST(ArbiterTest, OneThatMovesNeverFails) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  Heals heals(&arbiter, Loss::kDied, 250 * kMillisecond);
  heals.moves = 1;
  EXPECT_EQ(0, heals.Until(kStartNs + 3600 * kSecond));
  EXPECT_EQ(0, heals.warned);
  EXPECT_EQ(Vain::kNone, arbiter.vain());
}

// A lane that returns to its path, or leaves it, has not healed in vain.
TEST(ArbiterTest, OneThatIsMovedOnPurposeIsNotInVain) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  Heals heals(&arbiter, Loss::kOther, kSecond);
  EXPECT_EQ(0, heals.Until(kStartNs + 120 * kSecond));
  EXPECT_EQ(Vain::kNone, arbiter.vain());
}

TEST(ArbiterTest, APeerThatDoesNotReadNeverFails) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 3600 * kSecond; now_ns += tuning::kLookNs) {
    ASSERT_EQ(Finding::kFine, arbiter.Look(0, Shut(), now_ns));
  }
}

TEST(ArbiterTest, AnIdleLaneNeverFails) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 600 * kSecond; now_ns += tuning::kLookNs) {
    if (now_ns % kSecond == 0) {
      arbiter.Lost(0, Loss::kDied);
      arbiter.Back(0, {1000, true}, now_ns);
    }
    LaneTcpInfo idle = Holding();
    idle.held_bytes = 0;
    ASSERT_EQ(Finding::kFine, arbiter.Look(0, idle, now_ns));
  }
  EXPECT_FALSE(arbiter.Warns(kStartNs + 600 * kSecond));
}

// Somebody resets its sockets faster than they can be seen to be idle.
TEST(ArbiterTest, OneThatOwesNothingNeverFails) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  (void)arbiter.Look(0, Holding(), kStartNs);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 600 * kSecond; now_ns += tuning::kLookNs) {
    arbiter.Lost(0, Loss::kDied);
    arbiter.Back(0, {1000, false}, now_ns);
    ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, now_ns));
    ASSERT_FALSE(arbiter.Warns(now_ns));
  }
  EXPECT_EQ(Vain::kNone, arbiter.vain());
}

TEST(ArbiterTest, OneThatFindsNoSocketFailsInTime) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  EXPECT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, kStartNs)) << "it had nothing to send";
  (void)arbiter.Look(0, Holding(), kStartNs);
  arbiter.Lost(0, Loss::kDied);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + kTimeoutNs; now_ns += tuning::kLookNs) {
    ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, now_ns));
  }
  EXPECT_EQ(Finding::kVain, arbiter.LookAtLost(0, false, kStartNs + kTimeoutNs));
  EXPECT_EQ(Finding::kFine, arbiter.LookAtLost(0, true, kStartNs + kTimeoutNs))
      << "no lane is up: TCPX_RECONNECT_TIMEOUT";
  for (int64_t now_ns = kStartNs + kTimeoutNs; now_ns < kStartNs + kAloneNs; now_ns += kSecond) {
    ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(0, true, now_ns));
  }
  EXPECT_EQ(Finding::kVain, arbiter.LookAtLost(0, true, kStartNs + kAloneNs));
}

// Nobody looks at an idle end. When its lane is lost an hour later, that is no hour of silence.
TEST(ArbiterTest, WhatWasKnownBeforeAPauseIsForgotten) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  (void)arbiter.Look(0, Holding(), kStartNs);
  arbiter.Lost(0, Loss::kDied);
  EXPECT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, kStartNs + 3600 * kSecond));
}

TEST(ArbiterTest, DialsThatMoveNothingBecomeRare) {
  constexpr int kLanes = 8;
  Arbiter arbiter(kLanes, kTimeoutNs, kAloneNs);
  std::vector<int64_t> dials;
  std::vector<int64_t> next(kLanes, kStartNs);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 20 * kSecond; now_ns += kMillisecond) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (now_ns < next[static_cast<size_t>(lane)]) continue;
      arbiter.Lost(lane, Loss::kDied);
      next[static_cast<size_t>(lane)] = arbiter.DialAtNs(lane, now_ns);
      dials.push_back(next[static_cast<size_t>(lane)]);
      arbiter.Back(lane, {1000, true}, next[static_cast<size_t>(lane)]);
    }
  }
  std::sort(dials.begin(), dials.end());
  // Behind the first of each lane, of which nobody knows yet what becomes.
  for (size_t i = 3 * kLanes; i + 20 < dials.size(); ++i) EXPECT_GE(dials[i + 20] - dials[i], 950 * kMillisecond) << i;
  EXPECT_LT(dials.size(), size_t{20 * 20});
}

TEST(ArbiterTest, DialsThatMoveSomethingAreFast) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  int64_t now_ns = kStartNs;
  for (uint64_t i = 1; i <= 100; ++i) {
    arbiter.Lost(0, Loss::kDied);
    now_ns = arbiter.DialAtNs(0, now_ns);
    arbiter.Back(0, {i, true}, now_ns);
  }
  EXPECT_EQ(kStartNs + 99 * tuning::kBetweenDialsNs, now_ns);
}

TEST(ArbiterTest, OneLineASecondIsTold) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  EXPECT_TRUE(arbiter.MayTell(0, kStartNs));
  for (int i = 0; i < 4; ++i) {
    for (const int lane : {0, 1}) {
      arbiter.Lost(lane, Loss::kDied);
      arbiter.Back(lane, {1000, true}, kStartNs);
    }
  }
  int told = 0;
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 10 * kSecond; now_ns += 10 * kMillisecond) {
    for (const int lane : {0, 1}) told += arbiter.MayTell(lane, now_ns) ? 1 : 0;
  }
  EXPECT_EQ(10, told);
  arbiter.Back(1, {2000, true}, kStartNs);
  EXPECT_TRUE(arbiter.MayTell(1, kStartNs + 1)) << "it moves again";
}

TEST(ArbiterTest, AShutWindowIsProbedOften) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  EXPECT_EQ(Arbiter::Probing::kAsIs, arbiter.Probes(0, Holding()));
  EXPECT_EQ(Arbiter::Probing::kOften, arbiter.Probes(0, Shut()));
  EXPECT_EQ(Arbiter::Probing::kAsIs, arbiter.Probes(0, Shut()));
  arbiter.Back(0, {1, true}, kStartNs);
  EXPECT_EQ(Arbiter::Probing::kOften, arbiter.Probes(0, Shut())) << "it is another socket";
  EXPECT_EQ(Arbiter::Probing::kFreely, arbiter.Probes(0, Holding()));
}

}  // namespace
}  // namespace tcpx
