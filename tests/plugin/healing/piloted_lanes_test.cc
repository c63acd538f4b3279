// Lanes are opened, moved and closed at random while messages run, with and without sockets that are killed: every byte
// arrives, and nobody sees an error. TCPX_TEST_LONG=1 runs ten times as many messages.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/traffic/traffic_run.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_test.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

std::vector<Mode> PilotedModes() {
  std::vector<Mode> modes;
  for (Mode settings : AllModes({2, 4})) {
    settings.environment["TCPX_HEAL"] = "1";
    settings.environment["TCPX_TEST_SHUFFLE_LANES"] = "1";
    settings.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
    modes.push_back(settings);
  }
  return modes;
}

class PilotedLanesTest : public PluginTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void Run(const Mode& mode, int messages, int kill_every_us, Runner runner) {
    const std::string reason = mode.ReasonToSkip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    ASSERT_NO_FATAL_FAILURE(OpenPair(mode));
    const auto count = static_cast<uint64_t>(LongRun() ? 10 * messages : Repeats(messages));
    const TrafficPlan plan(TestSeed(), count, mode.environment.count("TCPX_MAX_RECVS") == 0);
    std::atomic<uint64_t> received_total{0};
    std::unique_ptr<KillerThread> killer;
    if (kill_every_us > 0) killer = std::make_unique<KillerThread>(TestSeed(), kill_every_us, &received_total);
    const Deadline deadline;
    absl::Status status;
    do {
      status = runner(&net(), pair_, plan, &received_total);
    } while (status.ok() && !LogHas(" has a socket") && !deadline.Over());
    if (killer != nullptr) killer->Stop();
    EXPECT_TRUE(status.ok()) << status;
    fprintf(stderr, "%d sockets for lanes, %d lanes closed, %d moved\n", CountInLog(" has a socket"),
            CountInLog(" is closed"), CountInLog("and is moved"));
    EXPECT_TRUE(LogHas(" has a socket"));
    EXPECT_TRUE(Warnings().empty()) << LogText();
  }
};

TEST_P(PilotedLanesTest, BothEndsOnOneThread) { Run(GetParam(), 1500, 0, &RunTraffic); }

TEST_P(PilotedLanesTest, AThreadForEachEnd) { Run(GetParam(), 1500, 0, &RunTrafficOnTwoThreads); }

TEST_P(PilotedLanesTest, WithCreditsAndKilledSockets) {
  Mode settings = GetParam();
  settings.environment["TCPX_MAX_RECVS"] = "4";
  Run(settings, 1000, 2000, &RunTrafficOnTwoThreads);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, PilotedLanesTest, ::testing::ValuesIn(PilotedModes()), ModeName);

}  // namespace
}  // namespace tcpx
