// Lanes are opened, moved and closed at random while messages run, with and without sockets that are killed: every byte
// arrives, and nobody sees an error. TCPX_TEST_LONG=1 runs ten times as many messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/plugin/traffic/traffic_run.h"
#include "tests/support/plugin_log.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

int Lines(const std::string& text) {
  const std::vector<std::string> lines = LogLines(NCCL_LOG_INFO);
  return static_cast<int>(std::count_if(lines.begin(), lines.end(),
                                        [&](const std::string& line) { return absl::StrContains(line, text); }));
}

std::vector<Mode> SteeredModes() {
  std::vector<Mode> modes;
  for (Mode settings : AllModes({2, 4})) {
    settings.environment["TCPX_HEAL"] = "1";
    settings.environment["TCPX_STEER"] = "1";
    settings.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
    modes.push_back(settings);
  }
  return modes;
}

using Runner = absl::Status (*)(NetClient* net, const Ends& pair, const TrafficPlan& plan);

void RunSteered(const Mode& settings, uint64_t messages, int kill_every_us, Runner runner) {
  const std::string reason = settings.ReasonToSkip();
  if (!reason.empty()) GTEST_SKIP() << reason;
  if (LongRun()) messages *= 10;
  auto plugin = TestPlugin::Open(settings);
  ASSERT_TRUE(plugin.ok()) << plugin.status();
  auto pair = (*plugin)->Connect();
  ASSERT_TRUE(pair.ok()) << pair.status();
  const TrafficPlan plan(TestSeed(), messages, settings.environment.count("TCPX_MAX_RECVS") == 0);
  std::unique_ptr<KillerThread> killer;
  if (kill_every_us > 0) killer = std::make_unique<KillerThread>(TestSeed(), kill_every_us);
  const absl::Status status = runner(&(*plugin)->net(), *pair, plan);
  if (killer != nullptr) killer->Stop();
  EXPECT_TRUE(status.ok()) << status;
  fprintf(stderr, "%d sockets for lanes, %d lanes closed, %d moved\n", Lines(" has a socket"), Lines(" is closed"),
          Lines("and is moved"));
  EXPECT_GT(Lines(" has a socket"), 0);
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
  const absl::Status finished = (*plugin)->Finish();
  EXPECT_TRUE(finished.ok()) << finished;
}

class SteeredLanesTest : public ::testing::TestWithParam<Mode> {};

TEST_P(SteeredLanesTest, BothEndsOnOneThread) { RunSteered(GetParam(), 1500, 0, &RunTraffic); }

TEST_P(SteeredLanesTest, AThreadForEachEnd) { RunSteered(GetParam(), 1500, 0, &RunTrafficOnTwoThreads); }

TEST_P(SteeredLanesTest, WithCreditsAndKilledSockets) {
  Mode settings = GetParam();
  settings.environment["TCPX_MAX_RECVS"] = "4";
  RunSteered(settings, 1000, 2000, &RunTrafficOnTwoThreads);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, SteeredLanesTest, ::testing::ValuesIn(SteeredModes()), ModeName);

}  // namespace
}  // namespace tcpx
