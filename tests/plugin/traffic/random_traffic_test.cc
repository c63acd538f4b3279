// Seeded random traffic over the real shared library: every mode, lane count, IP version and API version.
// TCPX_TEST_LONG=1 runs 100,000 messages per combination.
#include <gtest/gtest.h>

#include <vector>

#include "tests/plugin/traffic/modes.h"
#include "tests/plugin/traffic/traffic_run.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

uint64_t Messages(uint64_t in_long_runs, uint64_t in_short_runs) {
  return LongRun() ? in_long_runs : in_short_runs / static_cast<uint64_t>(TimeScale());
}

using Runner = absl::Status (*)(NetClient* net, const Pair& pair, const TrafficPlan& plan);

void RunCombination(const LoopbackSettings& settings, uint64_t messages, Runner runner) {
  const std::string reason = ReasonToSkip(settings);
  if (!reason.empty()) GTEST_SKIP() << reason;
  auto plugin = Loopback::Open(settings);
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  if (settings.version != 0) {
    ASSERT_EQ(settings.version, (*plugin)->net().version());
  }
  auto pair = (*plugin)->Connect();
  ASSERT_TRUE(pair.ok()) << pair.status();
  const TrafficPlan plan(TestSeed(), messages);
  const absl::Status status = runner(&(*plugin)->net(), *pair, plan);
  EXPECT_TRUE(status.ok()) << status;
  const absl::Status finished = (*plugin)->Finish();
  EXPECT_TRUE(finished.ok()) << finished;
}

class RandomTrafficTest : public ::testing::TestWithParam<LoopbackSettings> {};

TEST_P(RandomTrafficTest, BothEndsOnOneThread) { RunCombination(GetParam(), Messages(100000, 2000), &RunTraffic); }

TEST_P(RandomTrafficTest, AThreadForEachEnd) {
  RunCombination(GetParam(), Messages(100000, 1200), &RunTrafficOnTwoThreads);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, RandomTrafficTest, ::testing::ValuesIn(AllModes({AF_INET, AF_INET6})), ModeName);

std::vector<LoopbackSettings> EveryVersion() {
  std::vector<LoopbackSettings> all;
  for (int version = 6; version <= 12; ++version) {
    for (const LoopbackSettings& mode : AllModes({AF_INET})) {
      if (mode.lanes != 4) continue;
      all.push_back(mode);
      all.back().version = version;
    }
  }
  return all;
}

class VersionTrafficTest : public ::testing::TestWithParam<LoopbackSettings> {};

TEST_P(VersionTrafficTest, BothEndsOnOneThread) { RunCombination(GetParam(), Messages(10000, 500), &RunTraffic); }

INSTANTIATE_TEST_SUITE_P(EveryVersion, VersionTrafficTest, ::testing::ValuesIn(EveryVersion()), ModeName);

}  // namespace
}  // namespace tcpx
