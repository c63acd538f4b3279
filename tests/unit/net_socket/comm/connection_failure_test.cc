// The first error of a connection, and who hears of it.
#include "net_socket/comm/connection_failure.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/log.h"
#include "net_socket/message/failure_kind.h"
#include "net_socket/seal/opener.h"
#include "tests/unit/net_socket/comm/fake_end.h"

namespace tcpx {
namespace {

class ConnectionFailureTest : public ::testing::Test {
 protected:
  void SetUp() override { Logged().clear(); }

  Options options_;
  Runtime runtime_{options_};
  FakeEnd end_;
};

TEST_F(ConnectionFailureTest, TheFirstErrorSticksAndIsReportedOnce) {
  const ConnectionSetup setup = FakeSetup(&runtime_);
  ConnectionFailure failure(&setup, &end_, NoTie());
  EXPECT_FALSE(failure.failed());
  EXPECT_TRUE(failure.status().ok());
  failure.FailLane(absl::UnavailableError("first"), 0);
  failure.Fail(absl::UnavailableError("second"), 0);
  failure.FailWithPeer("third");
  EXPECT_EQ(ConnectionState::kFailed, failure.state());
  EXPECT_EQ("first", failure.status().message());
  EXPECT_EQ("first", failure.Refusal().message());
  ASSERT_EQ(1u, Logged().size());
  EXPECT_TRUE(absl::StrContains(Logged()[0], "send device 0 lane 0 of 1")) << Logged()[0];
  EXPECT_EQ(std::vector<std::string>{"first"}, end_.told);
  failure.MoveToClosed();
  EXPECT_EQ(ConnectionState::kClosed, failure.state());
}

// If bytes are not tcpx, or not the peer's, the log has one line a second, and how many there were.
TEST_F(ConnectionFailureTest, GarbageFillsNoLog) {
  const ConnectionSetup setup = FakeSetup(&runtime_);
  const int64_t began_ns = MonotonicNanos();
  for (int i = 0; i < 1000; ++i) {
    ConnectionFailure failure(&setup, &end_, NoTie());
    failure.FailLane(FailureOf(i % 2 == 0 ? FailureKind::kGarbage : FailureKind::kForged, "what is not tcpx"), 0);
    EXPECT_TRUE(failure.failed());
  }
  EXPECT_LE(static_cast<int64_t>(Logged().size()), (MonotonicNanos() - began_ns) / kSecond + 2);
  EXPECT_EQ(1000u, end_.told.size());
  std::string more;
  LineLimit lines;
  EXPECT_TRUE(lines.May(kSecond, &more) && more.empty());
  for (int i = 0; i < 7; ++i) EXPECT_FALSE(lines.May(kSecond + i, &more));
  EXPECT_TRUE(lines.May(2 * kSecond, &more) && more == " (and 7 more such lines before)");
  // Other failures are reported as ever.
  const size_t told = Logged().size();
  ConnectionFailure failure(&setup, &end_, NoTie());
  failure.FailLane(absl::UnavailableError("another one"), 0);
  EXPECT_EQ(told + 1, Logged().size());
}

TEST_F(ConnectionFailureTest, ASilentOneWritesNothingAndHushesItsCommunicator) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure failure(&setup, &end_, NoTie());
  failure.Fail(absl::UnavailableError("closed"), 0, Noise::kSilent);
  EXPECT_TRUE(failure.failed());
  EXPECT_TRUE(Logged().empty());
  EXPECT_TRUE(group->Quiet("what follows"));
  EXPECT_EQ("", group->cause());
}

// As memory that is deregistered in flight does: what fails next may be another matter.
TEST_F(ConnectionFailureTest, APartingLeavesTheNextItsWarning) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure first(&setup, &end_, NoTie());
  ConnectionFailure second(&setup, &end_, NoTie());
  first.Fail(absl::UnavailableError("deregistered"), 0, Noise::kParting);
  EXPECT_TRUE(first.failed());
  EXPECT_TRUE(Logged().empty());
  EXPECT_EQ(std::vector<std::string>{"deregistered"}, end_.told);
  EXPECT_FALSE(group->Quiet("a cable"));
  second.FailLane(absl::UnavailableError("a cable"), 0);
  EXPECT_EQ(1u, Logged().size());
}

TEST_F(ConnectionFailureTest, ClosingAfterAPartingHushes) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure failure(&setup, &end_, NoTie());
  failure.Fail(absl::UnavailableError("deregistered"), 0, Noise::kParting);
  failure.Fail(absl::UnavailableError("closed"), 0, Noise::kSilent);
  EXPECT_EQ("deregistered", failure.status().message());
  EXPECT_TRUE(group->Quiet("a cable"));
}

TEST_F(ConnectionFailureTest, APartingThatAPeerSendsBackIsNoNews) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure second(&setup, &end_, NoTie());
  group->KeepQuiet("deregistered");
  second.FailWithPeer("deregistered");
  EXPECT_TRUE(second.failed());
  EXPECT_TRUE(Logged().empty());
}

// A peer with a receive posted calls an orderly end a failure, while other connections are still being closed.
TEST_F(ConnectionFailureTest, WhatAPeerMakesOfAClosingIsNoNews) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure told(&setup, &end_, NoTie());
  group->NoteClosing(MonotonicNanos());
  told.FailWithPeer("the peer closed the connection while a receive was posted");
  EXPECT_TRUE(told.failed());
  EXPECT_TRUE(Logged().empty());
}

TEST_F(ConnectionFailureTest, WhatAPeerSaysLongAfterAClosingIsNews) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure told(&setup, &end_, NoTie());
  group->NoteClosing(MonotonicNanos() - 10 * kSecond);
  told.FailWithPeer("a cable");
  EXPECT_EQ(1u, Logged().size());
}

TEST_F(ConnectionFailureTest, AClosingDoesNotHushWhatIsFoundHere) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure failure(&setup, &end_, NoTie());
  group->NoteClosing(MonotonicNanos());
  failure.FailLane(absl::UnavailableError("a cable"), 0);
  EXPECT_EQ(1u, Logged().size());
}

// The peer's orderly end may do that, too: no failure where nothing is under way.
TEST_F(ConnectionFailureTest, APeersPartingIsNamedByWhatFindsALaneBroken) {
  ConnectionSetup setup = FakeSetup(&runtime_);
  HealthHub hub{&runtime_.reactor};
  setup.health = std::make_shared<HealthPeer>(&hub, &runtime_.reactor, 1, true, nullptr);
  ConnectionFailure failure(&setup, &end_, NoTie());
  failure.NotePeerParted("deregistered");
  EXPECT_FALSE(failure.failed());
  EXPECT_TRUE(Logged().empty());
  failure.FailLane(absl::UnavailableError("reset"), 0);
  EXPECT_EQ("the peer failed: deregistered", failure.status().message());
  ASSERT_EQ(1u, Logged().size());
  EXPECT_TRUE(absl::StrContains(Logged()[0], "the peer failed: deregistered")) << Logged()[0];
}

// A lane of a connection whose peer has a health socket. Nothing is said on it unless a test says so.
class FailingTest : public ConnectionFailureTest {
 protected:
  FailingTest() { setup_.health = std::make_shared<HealthPeer>(&hub_, &runtime_.reactor, 1, true, nullptr); }
  ~FailingTest() override {
    tie_.Cut();
    runtime_.reactor.RequestStop();
    runtime_.reactor.Join();
  }

  ConnectionSetup setup_ = FakeSetup(&runtime_);
  HealthHub hub_{&runtime_.reactor};
  Tie tie_;
  ConnectionFailure failure_{&setup_, &end_, tie_};
};

// Housekeeping does nothing before the second half: a thread that waited for it would wait for ever.
TEST_F(FailingTest, AThreadThatFindsALaneBrokenWaitsForNothing) {
  ASSERT_TRUE(runtime_.reactor.Start().ok());
  std::promise<void> second_half;
  runtime_.reactor.Post([&second_half] { second_half.get_future().wait(); });
  failure_.FailLane(absl::UnavailableError("reset"), 0);
  EXPECT_FALSE(failure_.open());
  EXPECT_FALSE(failure_.failed());
  EXPECT_TRUE(failure_.Refusal().ok());
  failure_.FailLane(absl::UnavailableError("broken pipe"), 0);
  EXPECT_TRUE(Logged().empty());
  second_half.set_value();
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (!failure_.failed() && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ("reset", failure_.Refusal().message());
  ASSERT_EQ(1u, Logged().size());
  EXPECT_TRUE(absl::StrContains(Logged()[0], "reset")) << Logged()[0];
}

TEST_F(FailingTest, TheReasonIsReportedOnceItIsKnown) {
  failure_.FailLane(absl::UnavailableError("reset"), 0);
  EXPECT_FALSE(failure_.MayFailInLoop(false));
  failure_.FailWithPeer("a cable");
  EXPECT_EQ("the peer failed: a cable", failure_.Refusal().message());
  EXPECT_TRUE(failure_.MayFailInLoop(false));
  EXPECT_EQ(1u, Logged().size());
}

TEST_F(FailingTest, WhatHousekeepingFindsIsAReasonToTellWhatWasFoundFirst) {
  failure_.FailLane(absl::UnavailableError("reset"), 0);
  failure_.FailFound(absl::UnavailableError("the health socket broke"), kNoLane);
  EXPECT_EQ("reset", failure_.Refusal().message());
  EXPECT_EQ(1u, Logged().size());
}

TEST_F(FailingTest, AnOrderlyCloseReportsWhatIsNotReportedYet) {
  failure_.FailLane(absl::UnavailableError("reset"), 0);
  failure_.FailInTime();
  EXPECT_TRUE(failure_.failed());
  EXPECT_EQ(1u, Logged().size());
}

TEST_F(FailingTest, AnAbortIsNotReported) {
  failure_.FailLane(absl::UnavailableError("reset"), 0);
  failure_.Fail(absl::UnavailableError("closed"), 0, Noise::kSilent);
  EXPECT_EQ("closed", failure_.Refusal().message());
  EXPECT_TRUE(failure_.MayFailInLoop(true));
  EXPECT_TRUE(Logged().empty());
}

TEST_F(FailingTest, GarbageNeedsNoReason) {
  failure_.FailLane(GarbageError("no magic"), 0);
  EXPECT_TRUE(failure_.failed());
}

TEST_F(FailingTest, ATextAloneIsNoReason) {
  failure_.FailLane(absl::UnavailableError("the peer sent what is not tcpx: no magic"), 0);
  EXPECT_FALSE(failure_.failed());
}

TEST_F(FailingTest, WhatThePeerSaysOnALaneIsAReason) {
  failure_.FailLane(PeerError("a cable"), 0);
  EXPECT_EQ("the peer failed: a cable", failure_.Refusal().message());
}

// The peer itself knows nothing of it.
TEST_F(FailingTest, ForgedBytesAreReportedWhateverThePeerSays) {
  failure_.NotePeerParted("it leaves");
  failure_.FailLane(FailureOf(FailureKind::kForged, kNotAuthentic), 0);
  EXPECT_EQ(kNotAuthentic, failure_.Refusal().message());
}

// As tcpx_top --why shows it, of a line that may have come round a ring.
TEST(VerdictInTest, ALineNamesCauseAndCulprit) {
  const Verdict verdict = VerdictIn(
      "the peer failed: comm 7 send: verdict: process-gone: a pid 4 (rank 0): its process is gone; reset by peer "
      "(104)");
  EXPECT_EQ(Cause::kProcessGone, verdict.cause);
  EXPECT_EQ("a pid 4 (rank 0)", verdict.culprit);
  for (const char* line :
       {"", "reset by peer (104)", "verdict: ", "verdict: process-gone", "verdict: nothing: a pid 4: x"}) {
    EXPECT_EQ(Cause::kNone, VerdictIn(line).cause) << line;
  }
}

TEST_F(ConnectionFailureTest, WhatFollowsFromAnotherConnectionIsQuiet) {
  auto group = std::make_shared<FailureGroup>();
  const ConnectionSetup setup = FakeSetup(&runtime_, group);
  ConnectionFailure first(&setup, &end_, NoTie());
  ConnectionFailure second(&setup, &end_, NoTie());
  first.FailWithPeer("a cable");
  EXPECT_EQ("a cable", group->cause());
  EXPECT_EQ("the peer failed: a cable", first.status().message());
  second.FailWithCommunicator(group->cause());
  EXPECT_EQ("another connection of the communicator failed: a cable", second.status().message());
  EXPECT_EQ(1u, Logged().size());
}

TEST_F(ConnectionFailureTest, ARefusalRepeatsTheWarningWhereItIsWanted) {
  options_.stall_warn_ns = 1;
  for (bool wanted : {false, true}) {
    const ConnectionSetup setup = FakeSetup(&runtime_, nullptr, wanted);
    ConnectionFailure failure(&setup, &end_, NoTie());
    failure.FailFound(absl::UnavailableError("gone"), kNoLane);
    Logged().clear();
    (void)failure.Refusal();
    while (wanted && Logged().empty()) (void)failure.Refusal();
    ASSERT_EQ(wanted ? 1u : 0u, Logged().size());
    EXPECT_TRUE(!wanted || absl::StrContains(Logged()[0], "still failed: comm 0 send")) << Logged()[0];
  }
}

}  // namespace
}  // namespace tcpx
