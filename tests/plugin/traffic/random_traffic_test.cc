// Seeded random traffic over the real shared library: every mode, lane count, IP version and API version.
// TCPX_TEST_LONG=1 runs 100,000 messages per combination.
#include <gtest/gtest.h>

#include <vector>

#include "tests/plugin/traffic/traffic_run.h"
#include "tests/support/plugin_test.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

uint64_t Messages(uint64_t in_long_runs, uint64_t in_short_runs) {
  return LongRun() ? in_long_runs : in_short_runs / static_cast<uint64_t>(TimeScale());
}

class RandomTrafficTest : public PluginTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void Run(uint64_t messages, Runner runner) {
    const std::string reason = GetParam().ReasonToSkip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    ASSERT_NO_FATAL_FAILURE(OpenPair(GetParam()));
    if (GetParam().version != 0) {
      ASSERT_EQ(GetParam().version, net().version());
    }
    const absl::Status status = runner(&net(), pair_, TrafficPlan(TestSeed(), messages), nullptr);
    EXPECT_TRUE(status.ok()) << status;
  }
};

TEST_P(RandomTrafficTest, BothEndsOnOneThread) { Run(Messages(100000, 2000), &RunTraffic); }

TEST_P(RandomTrafficTest, AThreadForEachEnd) { Run(Messages(100000, 1200), &RunTrafficOnTwoThreads); }

INSTANTIATE_TEST_SUITE_P(EveryMode, RandomTrafficTest,
                         ::testing::ValuesIn(AllModes(EveryLaneCount(), {AF_INET, AF_INET6})), ModeName);

std::vector<Mode> EveryVersion() {
  std::vector<Mode> all;
  for (int version = 6; version <= 12; ++version) {
    for (const Mode& mode : AllModes({4})) {
      all.push_back(mode);
      all.back().version = version;
    }
  }
  return all;
}

class VersionTrafficTest : public RandomTrafficTest {};

TEST_P(VersionTrafficTest, BothEndsOnOneThread) { Run(Messages(10000, 500), &RunTraffic); }

INSTANTIATE_TEST_SUITE_P(EveryVersion, VersionTrafficTest, ::testing::ValuesIn(EveryVersion()), ModeName);

}  // namespace
}  // namespace tcpx
