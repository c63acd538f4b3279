// Calls are refused in a forked child, which is said once, and after the end, which waits for those inside.
#include "net_socket/plugin/call_guard.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "common/clock.h"
#include "common/log.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

constexpr int64_t kLongNs = 3600 * kSecond;

int g_lines = 0;
void Count(LogLevel level, uint64_t, const char*, int, const char*) {
  if (level == LogLevel::kWarn) ++g_lines;
}

TEST(CallGuardTest, RefusesInTheChild) {
  SetLogSink(&Count);
  CallGuard guard;
  EXPECT_TRUE(CallGuard::Pass(&guard).ok());
  EXPECT_FALSE(guard.forked());
  guard.Disable();
  EXPECT_TRUE(guard.forked());
  for (int call = 0; call < 3; ++call) EXPECT_EQ(absl::StatusCode::kUnknown, guard.Refusal().code());
  EXPECT_FALSE(CallGuard::Pass(&guard).ok());
  EXPECT_EQ(1, g_lines);
  SetLogSink(nullptr);
}

TEST(CallGuardTest, TheEndWaitsForCallsThatAreInside) {
  CallGuard guard;
  std::atomic<bool> ended{false};
  std::thread end;
  {
    const CallGuard::Pass pass(&guard);
    ASSERT_TRUE(pass.ok());
    EXPECT_FALSE(guard.End(kMillisecond));
    end = std::thread([&] {
      EXPECT_TRUE(guard.End(kLongNs));
      ended = true;
    });
    {
      const CallGuard::Pass late(&guard);
      EXPECT_FALSE(late.ok());
      EXPECT_EQ("tcpx is being unloaded", guard.Refusal().message());
    }
    EXPECT_FALSE(ended);
  }
  end.join();
  EXPECT_FALSE(CallGuard::Pass(&guard).ok());
  guard.Reopen();
  EXPECT_TRUE(CallGuard::Pass(&guard).ok());
  EXPECT_TRUE(guard.End(0)) << "none is left inside";
}

// No call is inside after the end has said so.
TEST(CallGuardTest, NoCallSlipsIn) {
  for (int round = 0; round < 200; ++round) {
    CallGuard guard;
    std::atomic<bool> over{false};
    std::atomic<int> inside_after{0};
    std::atomic<int> calls{0};
    std::thread caller([&] {
      for (bool refused = false; !refused;) {
        const CallGuard::Pass pass(&guard);
        refused = !pass.ok();
        if (!refused && over) ++inside_after;
        ++calls;
      }
    });
    const Deadline deadline;
    while (calls < 10 && deadline.Yield()) {
    }
    EXPECT_TRUE(guard.End(kLongNs));
    over = true;
    caller.join();
    EXPECT_EQ(0, inside_after);
  }
}

}  // namespace
}  // namespace tcpx
