// A crowded lane is replaced by one on a better path, and only to that.
#include <gtest/gtest.h>

#include <vector>

#include "common/clock.h"
#include "net_socket/pilot/trials.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

constexpr int kLanes = 8;
constexpr int kLanesMax = 16;
using State = PilotedLanes::State;

class SpreadTrialTest : public testing::Test {
 protected:
  // A look in which each lane that carries brings its rate, in bytes per step.
  const MeasuredWindow& Look(bool limited = true) {
    window_.Start(now_);
    MeasuredWindow::Progress progress = MeasuredWindow::Progress::kMeasures;
    while (progress != MeasuredWindow::Progress::kWhole) {
      for (int i = 0; i < kLanesMax; ++i) {
        if (lanes_.carries(i)) acked_[static_cast<size_t>(i)] += rates_[static_cast<size_t>(i)];
      }
      progress = window_.Measure(now_ += tuning::kStepNs, {acked_, limited, 1, &dry_});
    }
    return window_;
  }
  // Until the new lane is compared.
  int64_t Await() {
    const int64_t from = now_;
    while (trial_.Awaits(now_, {acked_, true, 1, &dry_, &round_trips_}, lanes_)) {
      EXPECT_TRUE(lanes_.carries(3)) << "the crowded one";
      now_ += tuning::kStepNs;
    }
    EXPECT_TRUE(trial_.Came(&lanes_));
    return now_ - from;
  }
  bool Begin(bool limited = true) {
    for (int i = 0; i < tuning::kSpreadKnownLooks; ++i) trial_.See(Look(limited), lanes_);
    if (!trial_.Begin(now_, window_.total(), &lanes_)) return false;
    for (const LaneOrder& order : lanes_.TakeOrders()) (void)lanes_.Opened(order.lane);
    awaited_ns_ = Await();
    return true;
  }
  // Until it is over.
  bool Judge() {
    while (!trial_.Judge(Look(), 0.01, &lanes_)) {
    }
    return true;
  }

  int64_t now_ = tuning::kStepNs;
  std::vector<uint64_t> acked_ = std::vector<uint64_t>(kLanesMax);
  std::vector<uint64_t> rates_ = std::vector<uint64_t>(kLanesMax, 1000);
  std::vector<bool> dry_ = std::vector<bool>(kLanesMax);
  std::vector<LanePolicy::RoundTrips> round_trips_ = std::vector<LanePolicy::RoundTrips>(kLanesMax);
  int64_t awaited_ns_ = 0;
  PilotedLanes lanes_{{kLanes, kLanesMax, true, 1}};
  MeasuredWindow window_{kLanesMax};
  SpreadTrial trial_{kLanesMax};
};

TEST_F(SpreadTrialTest, FewLanesStay) {
  rates_[3] = 500;
  for (int lane = 4; lane < kLanes; ++lane) lanes_.Set(lane, State::kNone);
  lanes_.Set(0, State::kNone);
  EXPECT_FALSE(Begin()) << "a third of the traffic";
  lanes_.Set(0, State::kCarries);
  EXPECT_TRUE(Begin());
}

TEST_F(SpreadTrialTest, LanesThatAreAlikeStayWhereTheNetworkIsNotTheLimit) {
  dry_[0] = true;
  EXPECT_FALSE(Begin(false));
}

// All its paths may be crowded alike.
TEST_F(SpreadTrialTest, TheSlowestIsTriedWhereTheNetworkIsTheLimit) {
  rates_[3] = 990;
  rates_[kLanes] = 1200;
  ASSERT_TRUE(Begin());
  EXPECT_TRUE(Judge());
  EXPECT_EQ(State::kClosing, lanes_.state(3));
}

TEST_F(SpreadTrialTest, ACrowdedLaneGivesWayToAFasterOne) {
  rates_[3] = 500;
  ASSERT_TRUE(Begin());
  EXPECT_EQ(0, awaited_ns_);
  EXPECT_EQ(kLanes, lanes_.carrying()) << "in its place, not with it";
  EXPECT_FALSE(lanes_.carries(3));
  EXPECT_TRUE(Judge());
  EXPECT_EQ(kLanes, lanes_.carrying());
  EXPECT_EQ(State::kClosing, lanes_.state(3));
}

TEST_F(SpreadTrialTest, ALaneInSlowStartIsNotCompared) {
  rates_[3] = 500;
  round_trips_[kLanes].now_us = 40000;
  ASSERT_TRUE(Begin());
  EXPECT_EQ(tuning::kSlowStartRounds * 40 * kMillisecond - tuning::kSettleNs, awaited_ns_);
}

// A ring is as slow as its slowest connection: the others have lanes that run dry, and may still take from it.
TEST_F(SpreadTrialTest, ACrowdedLaneGivesWayWhereAnotherRunsDry) {
  rates_[3] = 500;
  dry_[0] = true;
  ASSERT_TRUE(Begin(false));
  EXPECT_TRUE(Judge());
  EXPECT_EQ(State::kClosing, lanes_.state(3));
}

TEST_F(SpreadTrialTest, OneThatRunsDryIsNotCrowded) {
  rates_[3] = 500;
  dry_[3] = true;
  EXPECT_FALSE(Begin(false));
}

TEST_F(SpreadTrialTest, ItStaysWhereTheNewOneIsNoFaster) {
  rates_[3] = 500;
  rates_[kLanes] = 520;
  ASSERT_TRUE(Begin());
  EXPECT_TRUE(Judge());
  EXPECT_EQ(kLanes, lanes_.carrying());
  EXPECT_TRUE(lanes_.carries(3));
}

// A slow path of its own: the new lane only takes from the others. One look is enough.
TEST_F(SpreadTrialTest, ItStaysWhereItIsMissed) {
  rates_[3] = 500;
  ASSERT_TRUE(Begin());
  for (size_t i = 0; i < 3; ++i) rates_[i] = 500;
  EXPECT_TRUE(trial_.Judge(Look(), 0.01, &lanes_));
  EXPECT_TRUE(lanes_.carries(3));
  EXPECT_EQ(kLanes, lanes_.carrying());
}

TEST_F(SpreadTrialTest, NothingIsTriedWhereTheNetworkIsNeverTheLimit) {
  rates_[3] = 500;
  EXPECT_FALSE(Begin(false));
}

// A connection that pauses often has few whole looks.
TEST_F(SpreadTrialTest, TrialsDoNotEndBeforeLanesAreKnown) {
  rates_[3] = 500;
  trial_.See(Look(), lanes_);
  EXPECT_FALSE(trial_.Begin(now_, window_.total(), &lanes_));
  now_ += 2 * tuning::kSpreadForNs;
  EXPECT_TRUE(Begin());
}

// A connection that paused: nothing is known of the new lane.
TEST_F(SpreadTrialTest, OneThatIsBrokenOffIsNoFailure) {
  rates_[3] = 500;
  for (int i = 0; i < tuning::kSpreadVainMax; ++i) {
    ASSERT_TRUE(Begin()) << i;
    trial_.Undo(&lanes_);
    EXPECT_TRUE(lanes_.carries(3));
    for (const LaneOrder& order : lanes_.TakeOrders()) lanes_.Closed(order.lane);
  }
  EXPECT_TRUE(Begin());
}

TEST_F(SpreadTrialTest, TrialsThatDoNotHelpAreFew) {
  rates_[3] = 500;
  rates_[kLanes] = 520;
  int tries = 0;
  while (Begin()) {
    ++tries;
    EXPECT_TRUE(Judge());
    for (const LaneOrder& order : lanes_.TakeOrders()) lanes_.Closed(order.lane);
  }
  EXPECT_EQ(tuning::kSpreadVainMax, tries);
  trial_.PathChanged(now_);
  EXPECT_FALSE(Begin()) << "not so soon";
  now_ += tuning::kSpreadAgainNs;
  EXPECT_TRUE(Begin()) << "but it is not forgotten";
}

TEST_F(SpreadTrialTest, TrialsThatAreOverStayOverOnTheSamePath) {
  rates_[3] = 500;
  ASSERT_TRUE(Begin());
  trial_.PathChanged(now_);
  EXPECT_TRUE(Judge());
  now_ += 2 * tuning::kSpreadAgainNs;
  EXPECT_FALSE(Begin()) << "they were not over when it changed";
}

}  // namespace
}  // namespace tcpx
