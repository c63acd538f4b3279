// A transport runs exactly while someone holds a TransportUse.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "common/cpu_plan.h"
#include "common/log.h"
#include "common/params.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/plugin/transport.h"

namespace tcpx {
namespace {

bool Held(const TransportUse& use) { return use != nullptr; }
bool Last(const TransportUse& use) { return use.use_count() == 1; }

class TransportUsersTest : public ::testing::Test {
 protected:
  TransportUse Use() {
    auto use = users_.Use([this] {
      ++started_;
      return Transport::Start(options_, ThreadPlan(), nullptr, &notes_, nullptr);
    });
    EXPECT_TRUE(use.ok()) << use.status();
    return *std::move(use);
  }

  Options options_;
  LaneNotes notes_;
  int started_ = 0;
  TransportUsers users_;
};

TEST_F(TransportUsersTest, NobodyStartsNothing) {
  TransportUse nobody;
  EXPECT_FALSE(Held(nobody));
  EXPECT_FALSE(Last(nobody));
  EXPECT_FALSE(Held(TransportUse(nobody)));
  EXPECT_EQ(nullptr, users_.transport());
}

TEST_F(TransportUsersTest, TheLastOneRetiresIt) {
  TransportUse first = Use();
  EXPECT_TRUE(Held(first));
  EXPECT_TRUE(Last(first));
  TransportUse second = Use();
  TransportUse third = second;
  EXPECT_EQ(1, started_);
  first = TransportUse();
  EXPECT_FALSE(Last(second));
  third = TransportUse();
  EXPECT_TRUE(Last(second));
  EXPECT_NE(nullptr, users_.transport());
  second = TransportUse();
  EXPECT_EQ(nullptr, users_.transport());
  const TransportUse next = Use();
  EXPECT_EQ(2, started_);
}

TEST_F(TransportUsersTest, AMovedUseIsOne) {
  TransportUse from = Use();
  const TransportUse to = std::move(from);
  EXPECT_FALSE(Held(from));
  EXPECT_TRUE(Last(to));
}

TEST_F(TransportUsersTest, AFailedStartLeavesNoUser) {
  EXPECT_FALSE(users_.Use([] { return absl::UnknownError("no descriptors"); }).ok());
  EXPECT_EQ(nullptr, users_.transport());
  EXPECT_TRUE(Last(Use()));
}

TEST_F(TransportUsersTest, NobodyUsesItAfterTheEnd) {
  const TransportUse late = Use();  // Ends after the transport.
  users_.End(/*in_use=*/false);
  EXPECT_EQ(nullptr, users_.transport());
  const auto refused =
      users_.Use([this] { return Transport::Start(options_, ThreadPlan(), nullptr, &notes_, nullptr); });
  EXPECT_EQ("tcpx is being unloaded", refused.status().message());
}

int g_warnings = 0;

void CountWarnings(LogLevel level, uint64_t, const char*, int, const char* text) {
  g_warnings += level == LogLevel::kWarn && absl::StrContains(text, "TCPX_ENGINE has no effect");
}

// An engine that was asked for, and no thread to run it; who set TCPX_THREADS=0 knows.
TEST_F(TransportUsersTest, AnEngineWithoutThreadsIsAWarning) {
  const struct {
    EngineChoice engine;
    int threads;
    int warnings;
  } rows[] = {{EngineChoice::kEpoll, -1, 1}, {EngineChoice::kEpoll, 0, 0}, {EngineChoice::kAuto, -1, 0}};
  for (const auto& row : rows) {
    options_.engine = row.engine;
    options_.threads = row.threads;
    g_warnings = 0;
    SetLogSink(&CountWarnings);
    (void)Use();
    SetLogSink(nullptr);
    EXPECT_EQ(row.warnings, g_warnings) << static_cast<int>(row.engine) << " " << row.threads;
  }
}

}  // namespace
}  // namespace tcpx
