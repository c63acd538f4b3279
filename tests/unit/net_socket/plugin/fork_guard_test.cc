// All is refused in a forked child, and said once.
#include <gtest/gtest.h>

#include "common/log.h"
#include "net_socket/plugin/open_objects.h"

namespace tcpx {
namespace {

int g_lines = 0;
void Count(LogLevel level, uint64_t, const char*, int, const char*) {
  if (level == LogLevel::kWarn) ++g_lines;
}

TEST(ForkGuardTest, RefusesInTheChild) {
  SetLogSink(&Count);
  ForkGuard guard;
  EXPECT_TRUE(guard.Usable().ok());
  EXPECT_FALSE(guard.forked());
  guard.Disable();
  EXPECT_TRUE(guard.forked());
  for (int call = 0; call < 3; ++call) EXPECT_EQ(absl::StatusCode::kUnknown, guard.Usable().code());
  EXPECT_EQ(1, g_lines);
  SetLogSink(nullptr);
}

}  // namespace
}  // namespace tcpx
