// A kicked lane is served, however the kick meets the moment in which its thread falls asleep.
//
// Story: on kernels before 6.1 a ring's completions appear at any time, not only inside a call. The wake of a kick
//        could
// appear between the thread's last look at its queue and its look at the ring, was taken for nothing, and the thread
// slept for ever: the one who had kicked took it for awake. Loopback on Linux 6.18 never shows it; the older sets of
// setup flags do, once in 10^4 to 10^5 kicks.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <string>

#include "net_socket/engine/progress_pool.h"
#include "tests/support/deadline.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

class CountingLane final : public PoolLane {
 public:
  void AdvanceInLoop(Engine*) override { served.fetch_add(1, std::memory_order_seq_cst); }
  void CompleteInLoop(const Completion&) override {}

  std::atomic<int64_t> served{0};
};

// -1: epoll; else the first rung of io_uring's setup flags.
class KickStressTest : public ::testing::TestWithParam<int> {};

TEST_P(KickStressTest, NoKickIsLost) {
  const bool uring = GetParam() >= 0;
  if (uring) setenv("TCPX_TEST_URING_RUNG", std::to_string(GetParam()).c_str(), 1);
  std::string reason;
  const EngineChoice wanted = uring ? EngineChoice::kIoUring : EngineChoice::kEpoll;
  if (ProbeEngine(wanted, &reason) != wanted) GTEST_SKIP() << "no io_uring here: " << reason;
  ProgressPool pool;
  const absl::Status status = pool.Start(wanted, 1, {}, 0);
  ASSERT_TRUE(status.ok()) << status;
  CountingLane lane;
  pool.Attach(&lane);
  Rng rng(TestSeed());
  const int64_t kicks = LongRun() ? 1000000 : 60000 / TimeScale();
  for (int64_t kick = 0; kick < kicks; ++kick) {
    // Some meet a thread that is just falling asleep.
    for (uint64_t spins = rng.Between(0, 400); spins > 0; --spins) asm volatile("");
    const int64_t before = lane.served.load(std::memory_order_seq_cst);
    ProgressPool::Kick(&lane);
    Deadline deadline(20);
    while (lane.served.load(std::memory_order_seq_cst) == before) {
      if (!deadline.Over()) continue;
      pool.Stop();  // Its own wake ends the thread's sleep.
      FAIL() << "kick " << kick << " was lost";
    }
  }
  ProgressPool::Detach(&lane);
}

INSTANTIATE_TEST_SUITE_P(Engines, KickStressTest, ::testing::Values(-1, 0, 1, 2, 3), [](const auto& mode) {
  return mode.param < 0 ? std::string("epoll") : "io_uring_rung_" + std::to_string(mode.param);
});

}  // namespace
}  // namespace tcpx
