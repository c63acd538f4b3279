// Figures of runs that a hand has made.
#include "bench/fabric/verdict.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tcpx {
namespace fabric {
namespace {

// `rate`: by tenths of a second.
Course Made(double seconds, double (*rate)(double at)) {
  Course course;
  course.connections = course.hosts = 2;
  for (int i = 0; i < static_cast<int>(seconds * 10 + 0.5); ++i) {
    course.bytes.push_back(rate(i / 10.0) * Course::kSpan);
    course.sockets.push_back(8);
    course.dials.push_back(0);
  }
  return course;
}

double Steady(double) { return 100; }

TEST(FiguresTest, TheSlowestOfFewCollectivesIsTheirP99) {
  Course course = Made(60, Steady);
  for (int i = 0; i < 40; ++i) course.collectives.emplace_back(20.25 + i, i == 39 ? 3.0 : 1.0);
  EXPECT_DOUBLE_EQ(3, FiguresOf(course, 0).p99);
}

TEST(FiguresTest, OneOfTwoHundredIsBeyondTheP99) {
  Course course = Made(60, Steady);
  for (int i = 0; i < 200; ++i) course.collectives.emplace_back(41 + i / 20.0, i == 7 ? 3.0 : 1.0);
  EXPECT_DOUBLE_EQ(1, FiguresOf(course, 0).p99);
}

TEST(FiguresTest, ARateCountsOnceAllJobsRun) {
  const Course course = Made(60, [](double at) { return at < 20 ? 100.0 : 60.0; });
  EXPECT_NEAR(60, FiguresOf(course, 0, 20).rate, 1e-9);
  EXPECT_NEAR(0.6, FiguresOf(course, 0, 20).kept, 1e-9);
  EXPECT_EQ(0, FiguresOf(course, 20, 20).kept);
}

TEST(FiguresTest, DeviationAndTimeToSettle) {
  const Course steady = Made(60, [](double at) { return at < 7 ? 50.0 : 100.0; });
  const Figures figures = FiguresOf(steady, 0);
  EXPECT_NEAR(0, figures.deviation, 1e-9);
  EXPECT_NEAR(9, figures.settles, 0.3);
  EXPECT_DOUBLE_EQ(4, figures.lanes);
  const Course dips = Made(60, [](double at) { return at >= 42 && at < 44 ? 50.0 : 100.0; });
  EXPECT_NEAR(50 / 95.0 * 0.3, FiguresOf(dips, 0).deviation, 0.01) << "one of ten";
}

double Seen(const Scenario& scenario, const std::vector<Outcome>& outcomes, const std::string& id) {
  for (const Bar& bar : BarsOf(scenario, outcomes)) {
    if (bar.id == id) return bar.seen;
  }
  ADD_FAILURE() << "no bar " << id;
  return 0;
}

// What one fixed lane has at the same time: alone, or with the other job.
TEST(BarsTest, EachTimeIsComparedWithItsOwn) {
  Scenario scenario;
  scenario.jobs.resize(2);
  scenario.jobs[1].start = 20;
  std::vector<Outcome> outcomes;
  for (const Decider& decider : Deciders()) {
    const bool piloted = decider.policy.kind == Policy::Kind::kPilot;
    const Course first = Made(60, [](double at) { return at < 20 ? 100.0 : 60.0; });
    const Course slow = Made(60, [](double at) { return at < 20 ? 80.0 : 60.0; });
    outcomes.push_back(
        {decider.name, {piloted ? slow : first, Made(60, [](double at) { return at < 20 ? 0.0 : 60; })}});
  }
  EXPECT_NEAR(0.8, Seen(scenario, outcomes, "one"), 1e-9);
  EXPECT_NEAR(1, Seen(scenario, outcomes, "best"), 1e-9);
}

// Trials cost what a pilot that does nothing in the last third brings more.
TEST(BarsTest, TrialsCostWhatAFrozenPilotBringsMore) {
  Scenario scenario;
  scenario.jobs.resize(1);
  std::vector<Outcome> outcomes;
  for (const Decider& decider : Deciders()) {
    const bool tries = decider.policy.kind == Policy::Kind::kPilot && !decider.frozen;
    outcomes.push_back({decider.name, {Made(60, [](double at) { return at < 10 ? 50.0 : 100.0; })}});
    if (tries) outcomes.back().courses[0] = Made(60, [](double at) { return at > 50 && at < 52 ? 50.0 : 100.0; });
  }
  EXPECT_NEAR(0.05, Seen(scenario, outcomes, "trials"), 0.005);
}

}  // namespace
}  // namespace fabric
}  // namespace tcpx
