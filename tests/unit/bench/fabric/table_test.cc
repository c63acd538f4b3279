// The table and the picture of runs that a hand has made.
#include "bench/fabric/table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bench/fabric/svg_plots.h"

namespace tcpx {
namespace fabric {
namespace {

constexpr double kSeconds = 60;

Course Steady(double rate, double collective) {
  Course course;
  course.connections = course.hosts = 2;
  for (int i = 0; i < static_cast<int>(kSeconds * 10); ++i) {
    course.bytes.push_back(rate * Course::kSpan);
    course.sockets.push_back(8);
    course.dials.push_back(0);
  }
  for (double at = collective; at < kSeconds; at += collective) course.collectives.emplace_back(at, collective);
  return course;
}

// The autopilot has `rate`, all others 100. `brief`: as RunDeciders.
Run Made(const std::string& name, int hosts, double rate, bool brief) {
  Run run;
  run.scenario.name = name;
  run.scenario.hosts = hosts;
  run.scenario.jobs.resize(1);
  for (const Decider& decider : Deciders()) {
    run.outcomes.push_back({decider.name, {}});
    if (brief && !decider.brief()) continue;
    const bool equal_parts = decider.policy.kind == Policy::Kind::kEqualParts;
    run.outcomes.back().courses.push_back(Steady(run.outcomes.size() == 1 ? rate : 100, equal_parts ? 0.75 : 0.5));
  }
  return run;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n') {
      lines.emplace_back();
    } else {
      lines.back() += c;
    }
  }
  return lines;
}

int Count(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(MarkdownTableTest, ARowHasTheLeastAndTheMostOfItsSeeds) {
  const std::vector<std::string> lines =
      Lines(MarkdownTable({Made("trees", 8, 100, true), Made("ring", 8, 100, true), Made("trees", 8, 92, true)}));
  ASSERT_EQ(5u, lines.size());
  EXPECT_EQ(Count(lines[0], "|"), Count(lines[2], "|"));
  EXPECT_EQ(Count(lines[0], "|"), Count(lines[1], "|"));
  EXPECT_EQ("| trees | 8 | 500 | 500 | 4.0 |  |  | **0.920 to 1.000** | **0.920 to 1.000** |  | 0.000 | 0.000 |  |",
            lines[2])
      << "of which one seed misses two bars";
  EXPECT_EQ("| ring | 8 | 500 | 500 | 4.0 |  |  | 1.000 | 1.000 |  | 0.000 | 0.000 |  |", lines[3]);
  EXPECT_EQ("", lines[4]);
}

TEST(MarkdownTableTest, AllDecidersHaveTheirCells) {
  auto run = Made("alltoall", 64, 100.001, false);
  run.scenario.one_per_pair = true;
  const std::vector<std::string> lines = Lines(MarkdownTable({run}));
  ASSERT_EQ(4u, lines.size());
  EXPECT_EQ("| alltoall | 64 | 500 | 500 | 4.0 | 750 |  | 1.000 | 1.000 | 1.000 | 0.000 | 0.000 | 0.000 |", lines[2])
      << "what is a little below 0 has no sign";
}

TEST(SvgPlotsTest, APanelForEachScenarioAndALineForEachNumberOfHosts) {
  const std::string text = SvgPlots(
      {Made("ring", 8, 100, true), Made("ring", 64, 300, true), Made("ring", 8, 50, true), Made("trees", 8, 1, true)},
      "fabric --seed 7");
  EXPECT_EQ(0u, text.find("<svg "));
  EXPECT_EQ(text.size() - 7, text.rfind("</svg>\n"));
  EXPECT_EQ(1, Count(text, "<desc>fabric --seed 7</desc>"));
  EXPECT_EQ(2, Count(text, "<g transform"));
  EXPECT_EQ(2, Count(text, "</g>"));
  EXPECT_EQ(1, Count(text, ">8 hosts</text>"));
  EXPECT_EQ(1, Count(text, ">64 hosts</text>"));
  EXPECT_EQ(6, Count(text, "fill=\"none\"")) << "rates and dials of three, and none of a second seed";
  // From the top of a panel: 1.0 of the best fixed number, what is beyond the axis, and what is below it.
  EXPECT_EQ(1, Count(text, "<path d=\"M44.1 40.3L52.2 40.3"));
  EXPECT_EQ(1, Count(text, "<path d=\"M44.1 26.0L52.2 26.0"));
  EXPECT_EQ(1, Count(text, "<path d=\"M44.1 126.0L52.2 126.0"));
}

}  // namespace
}  // namespace fabric
}  // namespace tcpx
