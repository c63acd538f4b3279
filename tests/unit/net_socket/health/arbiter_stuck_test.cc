// Sockets of a lane in a row that move nothing: when that is an error or a warning, how often it is dialled, and what
// of it goes to the log.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "net_socket/health/arbiter.h"
#include "net_socket/health/tuning.h"
#include "tests/unit/net_socket/health/arbiter_lanes.h"

namespace tcpx {
namespace {

using Finding = Arbiter::Finding;
using Loss = Arbiter::Loss;

// When a lane is dialled that asks from now on.
int64_t DialledNs(Arbiter* arbiter, int lane, int64_t now_ns) {
  for (int64_t again_ns = 0; (again_ns = arbiter->TakeFirstDial(lane, now_ns)) != 0;) now_ns = again_ns;
  return now_ns;
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
      warned += arbiter_->Warns(now_ns_).lane == 0 ? 1 : 0;
      position += moves;
      if (arbiter_->Look(0, Holding(), now_ns_) == Finding::kStuck) return now_ns_;
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

TEST(ArbiterTest, OneWhoseSocketsMoveNothingFailsInTime) {
  for (const int64_t every_ns : {250 * kMillisecond, kSecond, 7 * kSecond}) {
    Arbiter arbiter(1, kTimeoutNs, kAloneNs);
    Heals heals(&arbiter, Loss::kDied, every_ns);
    const int64_t failed_ns = heals.Until(kStartNs + 3600 * kSecond);
    EXPECT_GE(failed_ns, kStartNs + kTimeoutNs);
    EXPECT_LE(failed_ns, kStartNs + kTimeoutNs + kSecond);
    EXPECT_EQ(1, heals.warned) << "a socket each " << every_ns << " ns";
    EXPECT_EQ(Stuck::kReset, arbiter.stuck());
  }
}

// Each of its sockets dies before anybody looks at it: the peer answers dials, so it is not stopped.
TEST(ArbiterTest, OneThatIsLostAtEachLookFailsInTime) {
  for (const bool alone : {false, true}) {
    Arbiter arbiter(1, kTimeoutNs, kAloneNs);
    int64_t now_ns = kStartNs;
    arbiter.Lost(0, Loss::kDied);
    arbiter.Awaited(0, kStartNs);
    while (now_ns < kStartNs + 2 * kTimeoutNs && arbiter.LookAtLost(0, alone, now_ns) != Finding::kStuck) {
      now_ns += tuning::kLookNs;
      arbiter.Reached(now_ns);
      arbiter.Back(0, {1000, true}, now_ns);
      arbiter.Lost(0, Loss::kDied);
    }
    EXPECT_LE(now_ns, kStartNs + kTimeoutNs + tuning::kLookNs) << alone;
  }
}

// A process that is stopped answers no dial, and its kernel takes the sockets.
TEST(ArbiterTest, OneThatReachesAStoppedPeerWaits) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  arbiter.Back(0, {1000, true}, kStartNs);
  arbiter.Lost(0, Loss::kDied);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 2 * kTimeoutNs; now_ns += tuning::kLookNs) {
    arbiter.Reached(now_ns);
    ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, now_ns)) << (now_ns - kStartNs) / kSecond;
  }
}

TEST(ArbiterTest, WhatASilentLaneMeetsHasItsName) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  EXPECT_EQ(Stuck::kNone, arbiter.stuck());
  Heals(&arbiter, Loss::kSilent, kSecond).Until(kStartNs + 5 * kSecond);
  EXPECT_EQ(Stuck::kSilent, arbiter.stuck());
  arbiter.Back(0, {2000, true}, kStartNs + 5 * kSecond);
  EXPECT_EQ(Stuck::kNone, arbiter.stuck()) << "a byte has moved";
}

TEST(ArbiterTest, OneThatMovesNeverFails) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  Heals heals(&arbiter, Loss::kDied, 250 * kMillisecond);
  heals.moves = 1;
  EXPECT_EQ(0, heals.Until(kStartNs + 3600 * kSecond));
  EXPECT_EQ(0, heals.warned);
  EXPECT_EQ(Stuck::kNone, arbiter.stuck());
}

// A lane that returns to its path, or leaves it, does not count as stuck; when it moves no byte that is an error, too.
TEST(ArbiterTest, OneThatIsMovedOnPurposeIsNotVain) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  Heals heals(&arbiter, Loss::kOther, kSecond);
  const int64_t failed_ns = heals.Until(kStartNs + 120 * kSecond);
  EXPECT_GE(failed_ns, kStartNs + kTimeoutNs);
  EXPECT_LE(failed_ns, kStartNs + kTimeoutNs + kSecond);
  EXPECT_EQ(Stuck::kNone, arbiter.stuck());
}

TEST(ArbiterTest, AMoveOnPurposeDoesNotChangeWhatTheOthersHaveInCommon) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  Heals(&arbiter, Loss::kSilent, kSecond).Until(kStartNs + 5 * kSecond);
  arbiter.Lost(0, Loss::kOther);
  EXPECT_EQ(Stuck::kSilent, arbiter.stuck(0));
}

TEST(ArbiterTest, AWarningNamesTheLaneAndItsCause) {
  Arbiter arbiter(3, kTimeoutNs, kAloneNs);
  Arbiter::Warning warning;
  for (int64_t now_ns = kStartNs; warning.lane < 0 && now_ns < kStartNs + 20 * kSecond; now_ns += kSecond) {
    for (const int lane : {0, 2}) {
      arbiter.Lost(lane, lane == 0 ? Loss::kDied : Loss::kSilent);
      arbiter.Back(lane, {lane == 0 ? static_cast<uint64_t>(now_ns) : 1000, true}, now_ns);
      (void)arbiter.Look(lane, Holding(), now_ns);
    }
    warning = arbiter.Warns(now_ns);
  }
  EXPECT_EQ(2, warning.lane);
  EXPECT_TRUE(warning.waits);
  EXPECT_FALSE(warning.lost);
  EXPECT_EQ(Stuck::kSilent, arbiter.stuck(2));
  EXPECT_EQ(Stuck::kNone, arbiter.stuck(0));
}

TEST(ArbiterTest, EachStretchOfTimeHasItsWarning) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  Heals heals(&arbiter, Loss::kDied, kSecond);
  heals.Until(kStartNs + 10 * kSecond);
  EXPECT_EQ(1, heals.warned);
  ++heals.position;
  heals.Until(kStartNs + 20 * kSecond);
  EXPECT_EQ(2, heals.warned);
}

// It has nothing to send, and no socket of it lasts.
TEST(ArbiterTest, AnIdleLaneWhoseSocketsAreResetIsDialledRarelyAndWarnedOf) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  int dials = 0, warned = 0;
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 100 * kSecond; ++dials) {
    now_ns = DialledNs(&arbiter, 0, now_ns);
    arbiter.Back(0, {1000, false}, now_ns);
    const Arbiter::Warning warning = arbiter.Warns(now_ns);
    warned += warning.lane == 0 && !warning.waits ? 1 : 0;
    arbiter.Lost(0, Loss::kDied);
  }
  EXPECT_LT(dials, 220);
  EXPECT_EQ(1, warned);
}

// A firewall forgets it each hour.
TEST(ArbiterTest, OneThatLastsIsNotWarnedOf) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 24 * 3600 * kSecond; now_ns += 3600 * kSecond) {
    arbiter.Lost(0, Loss::kDied);
    EXPECT_EQ(0, arbiter.TakeFirstDial(0, now_ns));
    arbiter.Back(0, {1000, false}, now_ns);
    EXPECT_EQ(-1, arbiter.Warns(now_ns).lane);
  }
}

TEST(ArbiterTest, AnIdleLaneThatFindsNoSocketIsWarnedOfOnce) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  arbiter.Lost(1, Loss::kDied);
  int warned = 0;
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 300 * kSecond; now_ns += tuning::kLookNs) {
    ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(1, false, now_ns));
    const Arbiter::Warning warning = arbiter.Warns(now_ns);
    if (warning.lane < 0) continue;
    ++warned;
    EXPECT_EQ(1, warning.lane);
    EXPECT_TRUE(warning.lost);
    EXPECT_GE(now_ns, kStartNs + kTimeoutNs);
  }
  EXPECT_EQ(1, warned);
}

TEST(ArbiterTest, DialsThatMoveNothingBecomeRare) {
  constexpr int kLanes = 8;
  Arbiter arbiter(kLanes, kTimeoutNs, kAloneNs);
  std::vector<int64_t> dials;
  std::vector<int64_t> next(kLanes, kStartNs);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 20 * kSecond; now_ns += kMillisecond) {
    for (int lane = 0; lane < kLanes; ++lane) {
      if (now_ns < next[static_cast<size_t>(lane)]) continue;
      const int64_t again_ns = arbiter.TakeFirstDial(lane, now_ns);
      next[static_cast<size_t>(lane)] = std::max(again_ns, now_ns + 1);
      if (again_ns != 0) continue;
      dials.push_back(now_ns);
      arbiter.Back(lane, {1000, true}, now_ns);
      arbiter.Lost(lane, Loss::kDied);
    }
  }
  std::sort(dials.begin(), dials.end());
  // After the first dials of each lane, when nobody knows yet what they come to.
  for (size_t i = 3 * kLanes; i + 20 < dials.size(); ++i) EXPECT_GE(dials[i + 20] - dials[i], 950 * kMillisecond) << i;
  EXPECT_LT(dials.size(), size_t{20 * 20});
}

// A lane that has to ask again, or asks often, takes nothing from the others.
TEST(ArbiterTest, ATurnIsTakenOnlyWhenItIsDue) {
  Arbiter arbiter(32, kTimeoutNs, kAloneNs);
  EXPECT_EQ(0, arbiter.TakeDialTurn(0, false, kStartNs));
  for (int i = 1; i <= 200; ++i) {
    EXPECT_EQ(kStartNs + tuning::kStuckDialsNs, arbiter.TakeDialTurn(i % 32, false, kStartNs + i));
  }
  EXPECT_EQ(0, arbiter.TakeDialTurn(1, false, kStartNs + tuning::kStuckDialsNs));
  EXPECT_EQ(0, arbiter.TakeDialTurn(1, false, kStartNs + kSecond));
  EXPECT_EQ(kStartNs + kSecond + tuning::kStuckDialsNs, arbiter.TakeDialTurn(1, false, kStartNs + kSecond))
      << "a pause is not made up for";
}

TEST(ArbiterTest, TheFirstDialByAnotherPathNeedsNoTurn) {
  Arbiter arbiter(64, kTimeoutNs, kAloneNs);
  for (int lane = 0; lane < 64; ++lane) {
    arbiter.Lost(lane, Loss::kDied);
    EXPECT_EQ(0, arbiter.TakeFirstDial(lane, kStartNs));
    EXPECT_EQ(0, arbiter.TakeDialTurn(lane, true, kStartNs + 1));
  }
  EXPECT_EQ(0, arbiter.TakeDialTurn(0, false, kStartNs + 2));
  arbiter.Back(0, {0, true}, kStartNs + 2);
  EXPECT_NE(0, arbiter.TakeDialTurn(0, true, kStartNs + 3)) << "its latest socket moved nothing";
}

TEST(ArbiterTest, APauseOfOneLaneDelaysNoOther) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  int64_t now_ns = kStartNs;
  for (int i = 0; i < 10; ++i) {
    arbiter.Lost(0, Loss::kDied);
    now_ns = DialledNs(&arbiter, 0, now_ns);
    arbiter.Back(0, {1000, true}, now_ns);
  }
  EXPECT_EQ(now_ns + tuning::kBetweenDialsMaxNs, arbiter.TakeFirstDial(0, now_ns));
  EXPECT_EQ(0, arbiter.TakeDialTurn(1, false, now_ns + tuning::kStuckDialsNs));
}

// 64 lanes, each dialled by its own path and by others in turn, as resume_dials.cc does. A dial without an answer ends
// after `kPatienceNs`; timers run in their order.
class Outage {
 public:
  static constexpr int kLanes = 64;
  static constexpr int64_t kPatienceNs = 1510 * kMillisecond;
  static constexpr int64_t kTurnNs = 500 * kMillisecond;

  // When the latest lane was dialled after `back_ns`, from which on each dial is answered; 0: not within an hour.
  int64_t HealedNs(int64_t back_ns) {
    for (int lane = 0; lane < kLanes; ++lane) {
      Ask(kStartNs + kPatienceNs, lane, false);
      Ask(kStartNs + 100 * kMillisecond, lane, true);
    }
    int64_t now_ns = kStartNs;
    while (healed_.size() < kLanes && now_ns < back_ns + 3600 * kSecond) {
      const auto [at_ns, lane, other] = timers_.begin()->second;
      timers_.erase(timers_.begin());
      if (healed_.count(lane) > 0) continue;
      now_ns = at_ns;
      const bool first = other && others_.insert(lane).second;
      const int64_t again_ns = arbiter_.TakeDialTurn(lane, first, now_ns);
      if (again_ns == 0 && now_ns >= back_ns) healed_.insert(lane);
      Ask(again_ns != 0 ? again_ns : now_ns + (other ? kTurnNs : kPatienceNs), lane, other);
    }
    return healed_.size() == kLanes ? now_ns : 0;
  }

 private:
  struct Asks {
    int64_t at_ns;
    int lane;
    bool other;
  };
  void Ask(int64_t at_ns, int lane, bool other) { timers_[{at_ns, ++asked_}] = {at_ns, lane, other}; }

  Arbiter arbiter_{kLanes, kTimeoutNs, kAloneNs};
  std::map<std::pair<int64_t, int>, Asks> timers_;
  std::set<int> others_;  // lanes dialled by another path
  std::set<int> healed_;
  int asked_ = 0;
};

TEST(ArbiterTest, AllLanesAreDialledSoonAfterAnOutage) {
  for (const int64_t outage_ns : {kSecond, 10 * kSecond, 50 * kSecond}) {
    const int64_t back_ns = kStartNs + outage_ns;
    const int64_t healed_ns = Outage().HealedNs(back_ns);
    EXPECT_GE(healed_ns, back_ns);
    EXPECT_LE(healed_ns, back_ns + (Outage::kLanes + 1) * tuning::kStuckDialsNs) << "out for " << outage_ns << " ns";
  }
}

TEST(ArbiterTest, DialsThatMoveSomethingAreFast) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  int64_t now_ns = kStartNs;
  for (uint64_t i = 1; i <= 100; ++i) {
    arbiter.Lost(0, Loss::kDied);
    now_ns = DialledNs(&arbiter, 0, now_ns);
    arbiter.Back(0, {i, true}, now_ns);
  }
  EXPECT_EQ(kStartNs + 99 * tuning::kBetweenDialsNs, now_ns);
}

TEST(ArbiterTest, OneLineASecondIsLogged) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  EXPECT_TRUE(arbiter.MayLog(0, kStartNs));
  for (int i = 0; i < 4; ++i) {
    for (const int lane : {0, 1}) {
      arbiter.Lost(lane, Loss::kDied);
      arbiter.Back(lane, {1000, true}, kStartNs);
    }
  }
  int logged = 0;
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 10 * kSecond; now_ns += 10 * kMillisecond) {
    for (const int lane : {0, 1}) logged += arbiter.MayLog(lane, now_ns) ? 1 : 0;
  }
  EXPECT_EQ(10, logged);
  arbiter.Back(1, {2000, true}, kStartNs);
  EXPECT_TRUE(arbiter.MayLog(1, kStartNs + 1)) << "it moves again";
}

// Each socket moves a little, and is reset.
TEST(ArbiterTest, SomeLinesAndThenOneASecondAreLogged) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  int logged = 0, unlogged = 0;
  uint64_t position = 1;
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 10 * kSecond; now_ns += 10 * kMillisecond) {
    arbiter.Lost(0, Loss::kDied);
    arbiter.Back(0, {++position, true}, now_ns);
    if (!arbiter.MayLog(0, now_ns)) continue;
    ++logged;
    unlogged += arbiter.TakeUnlogged();
  }
  EXPECT_EQ(tuning::kLinesAtOnce + 9, logged);
  EXPECT_GT(unlogged, 800);
}

}  // namespace
}  // namespace tcpx
