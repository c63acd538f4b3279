#include "bench/nccl_bench/watchdog.h"

#include <stdlib.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

TEST(WatchdogDeathTest, EndsAHangAndNamesThePlace) {
  if (getenv("TCPX_TEST_EMULATOR") != nullptr) GTEST_SKIP() << "after exec there is no emulation";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        Watchdog watchdog("nccl_bench: rank 3", 1);
        watchdog.Enter("all_reduce of float, 1K");
        for (;;) pause();
      },
      testing::ExitedWithCode(1), "nccl_bench: rank 3: no progress for 1 s, in: all_reduce of float, 1K");
}

TEST(Watchdog, LetsGoAtOnce) {
  Watchdog watchdog("test", 100000);
  watchdog.Enter("here");
  watchdog.Tick();
  EXPECT_EQ(watchdog.place(), "here");
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
