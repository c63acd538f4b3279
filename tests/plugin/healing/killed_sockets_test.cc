// Sockets of a running connection are killed at random, at both ends: every byte arrives, and nobody sees an error.
// TCPX_TEST_LONG=1 goes on until a thousand have died in each test.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>

#include "tests/plugin/traffic/traffic_run.h"
#include "tests/support/plugin_test.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

constexpr int kLongKills = 1000;
constexpr auto kLongest = std::chrono::minutes(2);  // of the usual form

// How often a lane went on, as the log has it.
int Resumed() { return CountInLog(" goes on, "); }

Mode Healing(Mode settings) {
  settings.environment["TCPX_HEAL"] = "1";
  settings.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
  return settings;
}

// On a busy machine the killer may get its first turn after the traffic: that goes on until a kill was seen to be
// healed.
class Enough {
 public:
  bool operator()(const KillerThread& killer) const {
    if (LongRun()) return killer.kills() >= kLongKills;
    return Resumed() > 0 || std::chrono::steady_clock::now() - began_ > kLongest;
  }

 private:
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

class KilledSocketsTest : public PluginTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void Run(const Mode& mode, int messages, int every_us, Runner runner) {
    const std::string reason = mode.ReasonToSkip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    ASSERT_NO_FATAL_FAILURE(OpenPair(Healing(mode)));
    const auto count = static_cast<uint64_t>(Repeats(messages));
    const TrafficPlan plan(TestSeed(), count, mode.environment.count("TCPX_MAX_RECVS") == 0);
    const Enough enough;
    std::atomic<uint64_t> received_total{0};
    KillerThread killer(TestSeed(), every_us, &received_total);
    absl::Status status;
    do {
      status = runner(&net(), pair_, plan, &received_total);
    } while (status.ok() && !enough(killer));
    killer.Stop();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_GT(killer.kills(), 0);
    fprintf(stderr, "%d kills, %d times a lane went on\n", killer.kills(), Resumed());
    EXPECT_GT(Resumed(), 0);
    EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
  }
};

TEST_P(KilledSocketsTest, BothEndsOnOneThread) { Run(GetParam(), 1500, 2000, &RunTraffic); }

TEST_P(KilledSocketsTest, AThreadForEachEnd) { Run(GetParam(), 1500, 1000, &RunTrafficOnTwoThreads); }

TEST_P(KilledSocketsTest, WithCredits) {
  Mode settings = GetParam();
  settings.environment["TCPX_MAX_RECVS"] = "4";
  Run(settings, 1000, 2000, &RunTrafficOnTwoThreads);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, KilledSocketsTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
