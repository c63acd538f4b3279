// Who is gone: each rule, by a clock of its own.
#include "net_socket/health/arbiter.h"

#include <gtest/gtest.h>

#include "common/clock.h"
#include "net_socket/health/tuning.h"
#include "tests/unit/net_socket/health/arbiter_lanes.h"

namespace tcpx {
namespace {

using Finding = Arbiter::Finding;
using Loss = Arbiter::Loss;

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
  EXPECT_FALSE(arbiter.Refused(false, false, kStartNs));
  EXPECT_FALSE(arbiter.Refused(true, false, kStartNs + 20 * kSecond)) << "a socket is up";
  EXPECT_FALSE(arbiter.Refused(false, false, kStartNs + 21 * kSecond));
  EXPECT_TRUE(arbiter.Refused(false, false, kStartNs + 22 * kSecond));
  arbiter.NotRefused();
  EXPECT_FALSE(arbiter.Refused(false, false, kStartNs + 30 * kSecond));
}

// It was killed: its health socket was reset for what it had not read, and a lane has ended.
TEST(ArbiterTest, ARefusalAfterALanesEndIsBelievedAtOnce) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  arbiter.Lost(0, Loss::kDied);
  EXPECT_FALSE(arbiter.Refused(false, false, kStartNs));
  arbiter.Ended(1);
  arbiter.Lost(1, Loss::kDied);
  EXPECT_FALSE(arbiter.Refused(true, false, kStartNs));
  EXPECT_TRUE(arbiter.Refused(false, false, kStartNs));
  arbiter.Back(1, {1, false}, kStartNs);
  EXPECT_FALSE(arbiter.Refused(false, false, kStartNs + 1)) << "it has dialled again since";
}

// Between them nothing could be dialled: there was no route, say.
TEST(ArbiterTest, RefusalsFarApartAreNotInARow) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  EXPECT_FALSE(arbiter.Refused(false, false, kStartNs));
  EXPECT_FALSE(arbiter.Refused(false, false, kStartNs + 20 * kSecond));
  EXPECT_FALSE(arbiter.Refused(false, false, kStartNs + 20 * kSecond + tuning::kRefusedNs - 1));
  EXPECT_TRUE(arbiter.Refused(false, false, kStartNs + 20 * kSecond + tuning::kRefusedNs));
}

TEST(ArbiterTest, AConnectionWithoutALaneIsOverdueInTime) {
  const Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  EXPECT_FALSE(arbiter.Overdue(0, kStartNs)) << "a lane is up";
  EXPECT_FALSE(arbiter.Overdue(kStartNs, kStartNs + kAloneNs - 1));
  EXPECT_TRUE(arbiter.Overdue(kStartNs, kStartNs + kAloneNs));
}

// What is wrong with it will be known in a moment.
TEST(ArbiterTest, AnotherSocketSettlesOnceSomethingMoves) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  (void)arbiter.Look(0, Holding(100), kStartNs);
  EXPECT_FALSE(arbiter.Unsettled(kStartNs));
  arbiter.Lost(0, Loss::kDied);
  EXPECT_TRUE(arbiter.Unsettled(kStartNs + 1));
  arbiter.Back(0, {1000, true}, kStartNs + 2);
  (void)arbiter.Look(0, Holding(10), kStartNs + 3);
  EXPECT_TRUE(arbiter.Unsettled(kStartNs + 3));
  (void)arbiter.Look(0, Holding(11), kStartNs + 4);
  EXPECT_FALSE(arbiter.Unsettled(kStartNs + 4));
}

TEST(ArbiterTest, OneThatIsDoneOrIdleIsSettled) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  arbiter.Lost(0, Loss::kDied);
  EXPECT_FALSE(arbiter.Unsettled(kStartNs)) << "it has nothing to send";
  arbiter.Back(0, {1000, true}, kStartNs);
  for (int look = 0; look < 2; ++look) arbiter.LookAtIdle(0, kStartNs + look);
  EXPECT_FALSE(arbiter.Unsettled(kStartNs + 2));
}

// It fills the peer's buffer before it is looked at, and the peer pauses for an hour.
TEST(ArbiterTest, APeerThatReadsNoMoreAfterResetsNeverFails) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  for (int i = 0; i < 3; ++i) {
    arbiter.Lost(0, Loss::kDied);
    arbiter.Back(0, {1000, true}, kStartNs + i);
  }
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 3600 * kSecond; now_ns += tuning::kLookNs) {
    ASSERT_EQ(Finding::kFine, arbiter.Look(0, Shut(), now_ns));
    ASSERT_EQ(-1, arbiter.Warns(now_ns).lane);
  }
  LaneTcpInfo reset = Shut();
  reset.established = false;
  for (int i = 0; i < 3; ++i) arbiter.Back(0, {1000, true}, kStartNs + 3600 * kSecond);
  for (int64_t ns = 0; ns < kTimeoutNs; ns += tuning::kLookNs) {
    (void)arbiter.Look(0, reset, kStartNs + 3600 * kSecond + ns);
  }
  EXPECT_EQ(Finding::kStuck, arbiter.Look(0, reset, kStartNs + 3600 * kSecond + kTimeoutNs))
      << "a dead socket waits not";
}

// Each burst is over before anybody looks twice.
TEST(ArbiterTest, LossesThatAreRepeatedAreNoticedAsSoon) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  LaneTcpInfo silent = Holding();
  silent.resent = 2;
  int64_t now_ns = kStartNs;
  for (uint64_t loss = 1; loss <= 10; ++loss) {
    const int64_t since_ns = now_ns;
    for (; arbiter.Look(0, silent, now_ns) != Finding::kSuspect; now_ns += tuning::kLookNs) {
      silent.last_ack_ms = static_cast<uint32_t>((now_ns + tuning::kLookNs - since_ns) / kMillisecond);
      ASSERT_LE(now_ns - since_ns, kSecond) << "loss " << loss;
    }
    arbiter.Lost(0, Loss::kSilent);
    arbiter.Moved(0, now_ns);
    arbiter.Back(0, {1000 * loss, true}, now_ns);
    now_ns += 3 * kSecond;
  }
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
  EXPECT_EQ(-1, arbiter.Warns(kStartNs + 600 * kSecond).lane);
}

// Somebody resets its sockets faster than they can be seen to be idle.
TEST(ArbiterTest, OneThatOwesNothingNeverFails) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  (void)arbiter.Look(0, Holding(), kStartNs);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + 600 * kSecond; now_ns += tuning::kLookNs) {
    arbiter.Lost(0, Loss::kDied);
    arbiter.Back(0, {1000, false}, now_ns);
    ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, now_ns));
    ASSERT_FALSE(arbiter.Warns(now_ns).waits);
  }
  EXPECT_EQ(Stuck::kNone, arbiter.stuck());
}

// Its kernel accepts each dial.
TEST(ArbiterTest, AStoppedPeerIsNoPathWithoutNewConnections) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  (void)arbiter.Look(0, Holding(), kStartNs);
  arbiter.Lost(0, Loss::kSilent);
  int64_t now_ns = kStartNs;
  for (; now_ns < kStartNs + 4 * kTimeoutNs; now_ns += tuning::kLookNs) {
    if ((now_ns - kStartNs) % (3 * kSecond) == 0) arbiter.Reached(now_ns);
    (void)arbiter.LookAtLost(0, false, now_ns);
    ASSERT_EQ(-1, arbiter.Warns(now_ns).lane);
  }
  now_ns += kTimeoutNs + tuning::kReachedNs;
  (void)arbiter.LookAtLost(0, false, now_ns);
  EXPECT_TRUE(arbiter.Warns(now_ns).lost);
}

TEST(ArbiterTest, OneThatFindsNoSocketFailsInTime) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  EXPECT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, kStartNs)) << "it had nothing to send";
  (void)arbiter.Look(0, Holding(), kStartNs);
  arbiter.Lost(0, Loss::kDied);
  for (int64_t now_ns = kStartNs; now_ns < kStartNs + kTimeoutNs; now_ns += tuning::kLookNs) {
    ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, now_ns));
  }
  EXPECT_EQ(Finding::kStuck, arbiter.LookAtLost(0, false, kStartNs + kTimeoutNs));
  EXPECT_EQ(Finding::kFine, arbiter.LookAtLost(0, true, kStartNs + kTimeoutNs))
      << "no lane is up: TCPX_RECONNECT_TIMEOUT";
  for (int64_t now_ns = kStartNs + kTimeoutNs; now_ns < kStartNs + kAloneNs; now_ns += kSecond) {
    ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(0, true, now_ns));
  }
  EXPECT_EQ(Finding::kStuck, arbiter.LookAtLost(0, true, kStartNs + kAloneNs));
}

// Its bulk lanes were lost while they had nothing to send; what is to be sent now waits for them.
TEST(ArbiterTest, OneThatIsAwaitedAndFindsNoSocketFailsInTime) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  arbiter.Lost(1, Loss::kDied);
  auto until = [&arbiter, now_ns = kStartNs](int64_t end_ns, int64_t since_ns, bool peer_waits) mutable {
    for (; now_ns < end_ns; now_ns += tuning::kLookNs) {
      arbiter.Awaited(1, since_ns);
      if (peer_waits) arbiter.PeerWaited(now_ns);
      if (arbiter.LookAtLost(1, false, now_ns) == Finding::kStuck) return now_ns;
    }
    return int64_t{0};
  };
  EXPECT_EQ(0, until(kStartNs + 600 * kSecond, 0, false)) << "nobody waits for it";
  const int64_t since_ns = kStartNs + 600 * kSecond;
  EXPECT_EQ(0, until(kStartNs + 1200 * kSecond, since_ns, true)) << "the peer waits itself";
  const int64_t failed_ns = until(kStartNs + 1800 * kSecond, since_ns, false);
  EXPECT_GE(failed_ns, kStartNs + 1200 * kSecond + kTimeoutNs - tuning::kLookNs);
  EXPECT_LE(failed_ns, kStartNs + 1200 * kSecond + kTimeoutNs);
}

// Nobody looks at an idle end. When its lane is lost an hour later, that is no hour of silence.
TEST(ArbiterTest, WhatWasKnownBeforeAPauseIsForgotten) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  (void)arbiter.Look(0, Holding(), kStartNs);
  arbiter.Lost(0, Loss::kDied);
  EXPECT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, kStartNs + 3600 * kSecond));
}

// All of a burst is acknowledged, and the socket dies before anybody looks again.
TEST(ArbiterTest, ALostLaneThatHoldsNothingHasNoWork) {
  for (const bool had_work : {false, true}) {
    Arbiter arbiter(2, kTimeoutNs, kAloneNs);
    arbiter.Back(0, {1000, false, 100}, kStartNs);
    if (had_work) (void)arbiter.Look(0, Holding(100), kStartNs);
    LaneTcpInfo done = Holding(200);
    done.held_bytes = 0;
    arbiter.Acked(0, done, kStartNs + 1);
    arbiter.Lost(0, Loss::kDied);
    for (int64_t now_ns = kStartNs; now_ns < kStartNs + 3 * kTimeoutNs; now_ns += tuning::kLookNs) {
      ASSERT_EQ(Finding::kFine, arbiter.LookAtLost(0, false, now_ns)) << "had work: " << had_work;
    }
  }
}

// The socket dies with the rest of a burst, before anybody looks.
TEST(ArbiterTest, ALostLaneThatHoldsSomethingHasWork) {
  Arbiter arbiter(2, kTimeoutNs, kAloneNs);
  arbiter.Back(0, {1000, false, 100}, kStartNs);
  arbiter.LookAtIdle(0, kStartNs);
  arbiter.Acked(0, Holding(200), kStartNs + 1);
  arbiter.Lost(0, Loss::kDied);
  int64_t now_ns = kStartNs + 1;
  while (now_ns < kStartNs + 3 * kTimeoutNs && arbiter.LookAtLost(0, false, now_ns) == Finding::kFine) {
    now_ns += tuning::kLookNs;
  }
  EXPECT_LE(now_ns, kStartNs + kTimeoutNs + kSecond);
}

TEST(ArbiterTest, AShutWindowIsProbedOften) {
  Arbiter arbiter(1, kTimeoutNs, kAloneNs);
  EXPECT_EQ(0, arbiter.ProbeNs(0, Holding()));
  EXPECT_EQ(tuning::kProbeNs, arbiter.ProbeNs(0, Shut()));
  EXPECT_EQ(0, arbiter.ProbeNs(0, Shut()));
  arbiter.Back(0, {1, true}, kStartNs);
  EXPECT_EQ(tuning::kProbeNs, arbiter.ProbeNs(0, Shut())) << "it is another socket";
  EXPECT_EQ(tuning::kProbeFreelyNs, arbiter.ProbeNs(0, Holding()));
}

}  // namespace
}  // namespace tcpx
