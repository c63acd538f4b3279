// The health socket dies, again and again, at either end: no connection fails for it, and what is said on it arrives
// all the same.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/plugin/traffic/traffic_run.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

// How often it came back, at either end.
int Returns() {
  const std::vector<std::string> lines = LogLines(NCCL_LOG_INFO);
  return static_cast<int>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return absl::StrContains(line, "the health socket ") && absl::StrContains(line, " is back");
  }));
}

// The kernel's names of both ends of the health socket, while it is connected.
std::set<uint64_t> Cookies() {
  std::set<uint64_t> cookies;
  for (const LaneEnd& end : FindHealthEnds()) cookies.insert(end.cookie);
  return cookies;
}

class HealthSocketTest : public RulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment["TCPX_HEAL"] = "1";
    settings.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
    settings.environment["TCPX_SPREAD_ERRORS"] = "0";
    // What takes so long never comes.
    settings.environment["TCPX_RECONNECT_TIMEOUT"] = "600";
    return settings;
  }

  // Kills the health socket, and waits until there is another one.
  void KillAndAwait(int nth) {
    const std::set<uint64_t> before = Cookies();
    SocketKiller killer(TestSeed() + static_cast<uint64_t>(nth), true);
    Deadline deadline;
    while (!killer.KillOne()) ASSERT_TRUE(deadline.Yield()) << LogText();
    const auto both_are_new = [&before] {
      const std::set<uint64_t> now = Cookies();
      return now.size() == 2 && std::none_of(now.begin(), now.end(), [&](uint64_t one) { return before.count(one); });
    };
    while (!both_are_new()) ASSERT_TRUE(deadline.Yield()) << LogText();
  }

  void Exchange(const Ends& pair) {
    const TrafficPlan plan(TestSeed(), 20);
    const absl::Status status = RunTrafficOnTwoThreads(&net(), pair, plan);
    ASSERT_TRUE(status.ok()) << status;
  }
};

TEST_P(HealthSocketTest, TrafficGoesOn) {
  Ends pair;
  MakePair(&pair);
  const TrafficPlan plan(TestSeed(), LongRun() ? 15000 : static_cast<uint64_t>(Repeats(1000)));
  KillerThread killer(TestSeed(), 2000, nullptr, true);
  const absl::Status status = RunTrafficOnTwoThreads(&net(), pair, plan);
  killer.Stop();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(killer.kills(), 0);
  EXPECT_GT(Returns(), 0);
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
  fprintf(stderr, "%d kills, %d returns\n", killer.kills(), Returns());
}

TEST_P(HealthSocketTest, AnIdleConnectionStaysUp) {
  Ends pair;
  MakePair(&pair);
  for (int i = 0; i < 5; ++i) ASSERT_NO_FATAL_FAILURE(KillAndAwait(i));
  Exchange(pair);
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
}

TEST_P(HealthSocketTest, NewConnectionsComeAbout) {
  std::vector<Ends> pairs(LongRun() ? 200 : static_cast<size_t>(Repeats(20)));
  {
    KillerThread killer(TestSeed(), 500, nullptr, true);
    for (Ends& pair : pairs) ASSERT_NO_FATAL_FAILURE(MakePair(&pair));
  }
  for (const Ends& pair : pairs) Exchange(pair);
}

TEST_P(HealthSocketTest, AnAbortIsReportedAllTheSame) {
  for (int i = 0; i < Repeats(10); ++i) {
    Ends pair;
    MakePair(&pair);
    std::string never(4 << 20, 'n');
    ASSERT_TRUE(PostSend(&net(), pair.send, never.data(), never.size()).ok());
    SocketKiller killer(TestSeed() + static_cast<uint64_t>(i), true);
    (void)killer.KillOne();
    ASSERT_TRUE(plugin_->Close({pair.send, nullptr}).ok());
    std::string buffer(4 << 20, '\0');
    const absl::Status status = Received(pair.receive, &buffer);
    EXPECT_EQ(absl::StatusCode::kInternal, status.code()) << status;
    ASSERT_TRUE(plugin_->Close({nullptr, pair.receive}).ok());
  }
}

TEST_P(HealthSocketTest, ACloseIsReportedAllTheSame) {
  Ends other;  // Keeps the socket in use.
  MakePair(&other);
  for (int i = 0; i < Repeats(10); ++i) {
    Ends pair;
    MakePair(&pair);
    SocketKiller killer(TestSeed() + static_cast<uint64_t>(i), true);
    (void)killer.KillOne();
    ASSERT_TRUE(plugin_->Close({pair.send, nullptr}).ok());
    std::string buffer(1000, '\0');
    const absl::Status status = Received(pair.receive, &buffer);
    EXPECT_EQ(absl::StatusCode::kInternal, status.code()) << status;
    ASSERT_TRUE(plugin_->Close({nullptr, pair.receive}).ok());
  }
  Exchange(other);
}

class SwallowedHealthTest : public HealthSocketTest {
 protected:
  Mode Settings() const override {
    Mode settings = HealthSocketTest::Settings();
    settings.environment["TCPX_PEER_TIMEOUT"] = "5";
    return settings;
  }
};

// Neither end hears of it, and its keepalive goes unanswered.
TEST_P(SwallowedHealthTest, AnotherOneTakesItsPlace) {
  Ends pair;
  MakePair(&pair);
  const std::vector<LaneEnd> ends = FindHealthEnds();
  ASSERT_EQ(2u, ends.size());
  for (const LaneEnd& end : ends) {
    if (!Swallow(end.fd)) GTEST_SKIP() << "this kernel refuses IP_MINTTL";
  }
  Deadline deadline;
  while (Returns() < 2) ASSERT_TRUE(deadline.Yield()) << LogText();
  Exchange(pair);
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
}

INSTANTIATE_TEST_SUITE_P(SomeModes, HealthSocketTest, ::testing::ValuesIn(AllModes({1, 4})), ModeName);
INSTANTIATE_TEST_SUITE_P(OneMode, SwallowedHealthTest, ::testing::Values(Mode()), ModeName);

}  // namespace
}  // namespace tcpx
