// The short form of docs/scale.md: what the autopilot has to hold on fabrics of 8 and 64 hosts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/fabric/fabric_report.h"

namespace tcpx {
namespace fabric {
namespace {

// One scenario each, so that shards have about the same to compute.
class BarsTest : public testing::TestWithParam<Scenario> {};

TEST_P(BarsTest, Hold) {
  const Scenario& scenario = GetParam();
  const Length length{scenario.hosts > 8 ? LastStart(scenario) + 30 : 60, 6, 1, 0.02};
  const fabric::Run run{scenario, RunDeciders(scenario, length, true)};
  std::printf("%s", TextReport(run).c_str());
  for (const Bar& bar : BarsOf(scenario, run.outcomes)) {
    EXPECT_TRUE(bar.holds()) << bar.name << ": " << bar.seen << ", limit " << bar.limit;
  }
}

std::string NameOf(const testing::TestParamInfo<Scenario>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(EightHosts, BarsTest, testing::ValuesIn(Scenarios(8)), NameOf);
INSTANTIATE_TEST_SUITE_P(SixtyFourHosts, BarsTest, testing::ValuesIn(Scenarios(64)), NameOf);

// One seed, one result.
TEST(RunTest, ARunCanBeHadAgain) {
  const Scenario scenario = Scenarios(8)[1];
  const Length length{15, 6, 3, 0.02};
  const Outcome first = RunScenario(scenario, Deciders()[0], length);
  const Outcome again = RunScenario(scenario, Deciders()[0], length);
  EXPECT_EQ(first.courses[0].bytes, again.courses[0].bytes);
  EXPECT_EQ(first.courses[0].dials, again.courses[0].dials);
  EXPECT_LT(0, first.courses[0].Rate(0, 15));
}

}  // namespace
}  // namespace fabric
}  // namespace tcpx
