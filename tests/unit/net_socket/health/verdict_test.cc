// The decision alone, by tables: which evidence comes to which cause and culprit.
#include "net_socket/health/verdict.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

namespace tcpx {
namespace {

constexpr char kHere[] = "a pid 1";
constexpr char kThere[] = "b pid 2";
constexpr char kBetween[] = "the path between a pid 1 and b pid 2";
constexpr uint64_t kSelf = 11;
constexpr uint64_t kOther = 12;

LaneEvidence Lane(int number, bool silent) {
  LaneEvidence lane;
  lane.lane = number;
  lane.silent = silent;
  lane.silent_ms = silent ? 4000 : 10;
  lane.hosts = "10.0.0.1 10.0.0.2";
  lane.flow = "10.0.0.1:1000 to 10.0.0.2:2000";
  return lane;
}

// A receive that is stalled, of a peer that answers, moves, and has posted nothing.
struct Case {
  StallEvidence evidence;
  WaitNews news;
  Case() {
    evidence.lanes = {Lane(0, false), Lane(1, false)};
    evidence.speaks = evidence.heard_now = true;
    evidence.self = kSelf;
    evidence.here = kHere;
    evidence.there = kThere;
  }
};

struct Row {
  const char* name;
  std::function<void(Case*)> change;
  Cause cause;
  const char* culprit;
  bool hard = true;
};

void NameRoot(Case* c, Cause cause, uint64_t finder) {
  c->news.stalled_ms = 9000;
  c->news.root.cause = cause;
  c->news.root.finder = finder;
  c->news.root.culprit = "c pid 3";
}

void ExpectVerdicts(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    Case c;
    c.evidence.peer = &c.news;
    row.change(&c);
    const Verdict verdict = JudgeStall(c.evidence);
    EXPECT_STREQ(CauseName(row.cause), CauseName(verdict.cause)) << row.name;
    EXPECT_EQ(row.culprit, verdict.culprit) << row.name;
    EXPECT_EQ(row.hard && row.cause != Cause::kNone, verdict.hard) << row.name;
  }
}

TEST(VerdictTest, AProcessThatIsLateOrStoppedIsNamed) {
  ExpectVerdicts({
      {"nothing posted there", [](Case*) {}, Cause::kPeerLate, kThere, false},
      {"posted there just now", [](Case* c) { c->news.posted = 1; }, Cause::kPeerLate, kThere, false},
      {"no CPU here", [](Case* c) { c->evidence.no_cpu_percent = 97; }, Cause::kNoCpu, kHere},
      {"little CPU here", [](Case* c) { c->evidence.no_cpu_percent = 70; }, Cause::kPeerLate, kThere, false},
      {"no CPU there", [](Case* c) { c->news.no_cpu_percent = 95; }, Cause::kNoCpu, kThere},
      {"no answer", [](Case* c) { c->evidence.unanswered_ms = 3000; }, Cause::kProcessStopped, kThere},
      {"an answer is on its way", [](Case* c) { c->evidence.unanswered_ms = 300; }, Cause::kPeerLate, kThere, false},
      {"a stopped peer with a closed window",
       [](Case* c) {
         c->evidence.sends = true;
         c->evidence.unanswered_ms = 3000;
       },
       Cause::kProcessStopped, kThere},
      {"an old peer says nothing",
       [](Case* c) {
         c->evidence.speaks = false;
         c->evidence.unanswered_ms = 3000;
         c->evidence.peer = nullptr;
       },
       Cause::kNone, ""},
      {"the caller does not test", [](Case* c) { c->evidence.idle_here = c->evidence.caller_moves = true; },
       Cause::kPeerLate, kHere, false},
      {"our progress thread does nothing", [](Case* c) { c->evidence.idle_here = true; }, Cause::kInternal, kHere},
  });
}

TEST(VerdictTest, WhatTheNetworkSwallowsIsNamed) {
  ExpectVerdicts({
      {"one flow", [](Case* c) { c->evidence.lanes[1] = Lane(1, true); }, Cause::kFlowDropped, kBetween},
      {"one path of two",
       [](Case* c) {
         c->evidence.lanes[1] = Lane(1, true);
         c->evidence.health_apart = true;
       },
       Cause::kPathDead, kBetween},
      {"one flow, and whether the peer is heard on another is not known yet",
       [](Case* c) {
         c->evidence.lanes[1] = Lane(1, true);
         c->evidence.heard_now = false;
         c->evidence.unheard_ms = 300;
       },
       Cause::kNone, ""},
      {"one flow, and the peer has not been asked yet",
       [](Case* c) {
         c->evidence.lanes[1] = Lane(1, true);
         c->evidence.heard_now = false;
       },
       Cause::kNone, ""},
      {"one flow, and only the peer's kernel is heard",
       [](Case* c) {
         c->evidence.lanes[1] = Lane(1, true);
         c->evidence.heard_now = false;
         c->evidence.unanswered_ms = 300;
       },
       Cause::kFlowDropped, kBetween},
      {"one flow, and an old peer can't be asked",
       [](Case* c) {
         c->evidence.lanes[1] = Lane(1, true);
         c->evidence.speaks = c->evidence.heard_now = false;
         c->evidence.peer = nullptr;
       },
       Cause::kNone, ""},
      {"all of a host",
       [](Case* c) {
         c->evidence.lanes[1] = Lane(1, true);
         c->evidence.unheard_ms = 3000;
       },
       Cause::kHostGone, kThere},
      {"all of a host that answers a new connect",
       [](Case* c) {
         c->evidence.unheard_ms = 3000;
         c->evidence.host_answers = true;
       },
       Cause::kFlowDropped, kBetween},
      {"a receiver hears nothing of the host", [](Case* c) { c->evidence.unheard_ms = 3000; }, Cause::kHostGone,
       kThere},
      {"all of a host, and this end's interface is down",
       [](Case* c) {
         c->evidence.unheard_ms = 3000;
         c->evidence.down = "eth0";
       },
       Cause::kPathDead, kHere},
      {"an interface is down that nothing needs", [](Case* c) { c->evidence.down = "eth0"; }, Cause::kPeerLate, kThere,
       false},
      {"a lane gets no other socket",
       [](Case* c) {
         c->evidence.lanes[1].lost = true;
         c->evidence.lanes[1].lost_ms = 1000;
       },
       Cause::kFlowDropped, kBetween},
      {"a lane gets no other socket, and whether the process is stopped is not known yet",
       [](Case* c) {
         c->evidence.lanes[1].lost = true;
         c->evidence.lanes[1].lost_ms = 1000;
         c->evidence.heard_now = false;
         c->evidence.unanswered_ms = 999;
       },
       Cause::kNone, ""},
      {"a lane gets no other socket, and the health socket is lost",
       [](Case* c) {
         c->evidence.lanes[1].lost = c->evidence.health_lost = true;
         c->evidence.lanes[1].lost_ms = 1000;
         c->evidence.heard_now = false;
       },
       Cause::kFlowDropped, kBetween},
      {"a lane gets no other socket, and a stopped process gives none",
       [](Case* c) {
         c->evidence.lanes[1].lost = true;
         c->evidence.lanes[1].lost_ms = 3000;
         c->evidence.heard_now = false;
         c->evidence.unanswered_ms = 1000;
       },
       Cause::kProcessStopped, kThere},
      {"a lane was lost just now: whether it gets another socket is not known yet",
       [](Case* c) {
         c->evidence.lanes[1].lost = true;
         c->evidence.lanes[1].lost_ms = 999;
       },
       Cause::kNone, ""},
  });
}

TEST(VerdictTest, WhatThePeerNamesIsBelieved) {
  ExpectVerdicts({
      {"the peer names another", [](Case* c) { NameRoot(c, Cause::kProcessStopped, kOther); }, Cause::kProcessStopped,
       "c pid 3"},
      {"the peer names another that is late", [](Case* c) { NameRoot(c, Cause::kPeerLate, kOther); }, Cause::kPeerLate,
       "c pid 3", false},
      {"the peer names what this end said itself", [](Case* c) { NameRoot(c, Cause::kPeerLate, kSelf); }, Cause::kNone,
       "", false},
      {"the peer is stalled and names nobody", [](Case* c) { c->news.stalled_ms = 5000; }, Cause::kNone, "", false},
  });
}

// What was found before holds until then.
TEST(VerdictTest, AnAnswerThatIsAwaitedIsNotTheSameAsNoCause) {
  Case c;
  c.evidence.peer = nullptr;
  EXPECT_FALSE(JudgeStall(c.evidence).undecided);
  c.evidence.lanes[1] = Lane(1, true);
  EXPECT_FALSE(JudgeStall(c.evidence).undecided);
  c.evidence.heard_now = false;
  EXPECT_TRUE(JudgeStall(c.evidence).undecided);
}

// Nor is what the peer said before an answer to a question that its kernel has not taken.
TEST(VerdictTest, AHostThatIsHeardAndDoesNotHearIsNotDecidedOnAnew) {
  Case c;
  c.evidence.peer = &c.news;
  c.evidence.unheard_ms = 999;
  EXPECT_TRUE(JudgeStall(c.evidence).undecided);
  c.evidence.unheard_ms = 1000;
  EXPECT_EQ(Cause::kHostGone, JudgeStall(c.evidence).cause);
}

// Each socket of a lane was just heard when it is lost: that the peer is late is not known.
TEST(VerdictTest, ALaneThatHasJustGotAnotherSocketIsNotDecidedOn) {
  Case c;
  c.evidence.peer = &c.news;
  EXPECT_EQ(Cause::kPeerLate, JudgeStall(c.evidence).cause);
  c.evidence.unsettled = true;
  c.evidence.idle_here = true;
  EXPECT_TRUE(JudgeStall(c.evidence).undecided);
  c.evidence.unanswered_ms = 3000;
  EXPECT_EQ(Cause::kProcessStopped, JudgeStall(c.evidence).cause);
  c.evidence.unanswered_ms = 0;
  c.evidence.unsettled = false;
  c.evidence.lanes[1].lost = true;
  c.evidence.lanes[1].lost_ms = 500;
  EXPECT_TRUE(JudgeStall(c.evidence).undecided);
  c.evidence.lanes[1].lost_ms = 1500;
  EXPECT_EQ(Cause::kFlowDropped, JudgeStall(c.evidence).cause);
}

TEST(VerdictTest, SocketsThatMoveNothingAreNamedByWhatTheyHaveInCommon) {
  ExpectVerdicts({
      {"nothing large passes", [](Case* c) { c->evidence.stuck = Stuck::kSilent; }, Cause::kPathLosesLarge, kBetween},
      {"each is reset", [](Case* c) { c->evidence.stuck = Stuck::kReset; }, Cause::kFlowsReset, kBetween},
      {"no CPU is no excuse",
       [](Case* c) {
         c->evidence.stuck = Stuck::kReset;
         c->evidence.no_cpu_percent = 97;
       },
       Cause::kFlowsReset, kBetween},
  });
  EXPECT_EQ(Cause::kNone, JudgeStuck(Stuck::kNone, kHere, kThere).cause);
  FailureEvidence failure;
  failure.stuck = Stuck::kSilent;
  EXPECT_EQ(Cause::kPathLosesLarge, JudgeFailure(failure).cause);
}

TEST(VerdictTest, TheFlowIsNamedWithItsPorts) {
  Case c;
  c.evidence.lanes[1] = Lane(1, true);
  const Verdict verdict = JudgeStall(c.evidence);
  EXPECT_TRUE(absl::StrContains(verdict.evidence, "lane 1, 10.0.0.1:1000 to 10.0.0.2:2000")) << verdict.evidence;
}

TEST(VerdictTest, BothEndsOfAPathCallItTheSame) {
  Case c;
  c.evidence.lanes[1] = Lane(1, true);
  std::swap(c.evidence.here, c.evidence.there);
  EXPECT_EQ(kBetween, JudgeStall(c.evidence).culprit);
}

TEST(VerdictTest, AStalledEndWithoutARootWaits) {
  Case c;
  c.news.stalled_ms = 5000;
  c.evidence.peer = &c.news;
  EXPECT_TRUE(JudgeStall(c.evidence).waits);
}

TEST(VerdictTest, AFailureHasTheCauseThatItsEvidenceSays) {
  struct FailureRow {
    const char* name;
    FailureEvidence evidence;
    Cause cause;
  };
  const auto with = [](const std::function<void(FailureEvidence*)>& change) {
    FailureEvidence evidence;
    change(&evidence);
    return evidence;
  };
  const FailureRow rows[] = {
      {"nothing", {}, Cause::kNone},
      {"garbage", with([](auto* e) { e->garbage = e->process_gone = true; }), Cause::kNone},
      {"killed", with([](auto* e) { e->process_gone = true, e->error = ECONNRESET; }), Cause::kProcessGone},
      {"refused", with([](auto* e) { e->error = ECONNREFUSED; }), Cause::kProcessGone},
      {"a host", with([](auto* e) { e->silent = true, e->error = ETIMEDOUT; }), Cause::kHostGone},
      {"a cable here", with([](auto* e) { e->silent = true, e->down = "eth0"; }), Cause::kPathDead},
      {"one flow", with([](auto* e) { e->silent = e->health_heard = true; }), Cause::kFlowDropped},
      {"a reset on the way", with([](auto* e) { e->error = ECONNRESET, e->health_heard = e->others_up = true; }),
       Cause::kFlowDropped},
      {"a peer that resets all it has", with([](auto* e) { e->error = ECONNRESET, e->health_heard = true; }),
       Cause::kNone},
      {"a peer that closes", with([](auto* e) { e->health_heard = true; }), Cause::kNone},
      {"a reset, and nobody knows", with([](auto* e) { e->error = ECONNRESET; }), Cause::kNone},
  };
  for (const FailureRow& row : rows) {
    EXPECT_STREQ(CauseName(row.cause), CauseName(JudgeFailure(row.evidence).cause)) << row.name;
  }
}

TEST(VerdictTest, LossesAreNamedBeforeSlowness) {
  EXPECT_EQ(Cause::kNone, JudgePace({100000, 20}, false, kHere, kThere).cause);
  EXPECT_EQ(Cause::kNone, JudgePace({100, 5}, false, kHere, kThere).cause);
  EXPECT_EQ(Cause::kPathLoses, JudgePace({100000, 2000}, false, kHere, kThere).cause);
  EXPECT_EQ(Cause::kPathLoses, JudgePace({100000, 2000}, true, kHere, kThere).cause);
  EXPECT_EQ(Cause::kPathSlow, JudgePace({100000, 20}, true, kHere, kThere).cause);
}

}  // namespace
}  // namespace tcpx
