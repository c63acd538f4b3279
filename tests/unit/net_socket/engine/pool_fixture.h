// pool_fixture.h: a pool with each engine, and a lane that receives.
//
// Threads: EchoLane's atomics from any.
#pragma once

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "common/clock.h"
#include "common/cpu_plan.h"
#include "net_socket/engine/progress_pool.h"
#include "tests/support/deadline.h"

namespace tcpx {

// Receives for ever, one operation after the other.
class EchoLane final : public PoolLane {
 public:
  explicit EchoLane(int fd) {
    op_.fd = fd;
    op_.kind = IoOp::Kind::kReceive;
  }

  void AdvanceInLoop(Engine* engine) override {
    Enter();
    advanced.fetch_add(1);
    if (op_.in_flight || ended.load()) return;
    op_.iov[0] = {buffer_, sizeof(buffer_)};
    op_.iov_count = 1;
    Submit(engine, &op_);
  }

  void CompleteInLoop(const Completion& completion) override {
    Enter();
    if (completion.result <= 0) {
      ended.store(true);
      return;
    }
    received.fetch_add(completion.result);
  }

  std::atomic<int> advanced{0};
  std::atomic<int> received{0};
  std::atomic<bool> ended{false};
  std::atomic<bool> detached{false};
  std::atomic<bool> called_after_detach{false};
  std::atomic<pid_t> thread{0};

 private:
  void Enter() {
    if (detached.load()) called_after_detach.store(true);
    thread.store(static_cast<pid_t>(syscall(SYS_gettid)));
  }

  char buffer_[64];
};

class ProgressPoolTest : public ::testing::TestWithParam<EngineChoice> {
 protected:
  void SetUp() override {
    std::string reason;
    if (GetParam() == EngineChoice::kIoUring && ProbeEngine(GetParam(), &reason) != GetParam()) {
      GTEST_SKIP() << "no io_uring here: " << reason;
    }
  }

  void Start(ProgressPool* pool, int threads, const std::vector<ThreadPlace>& places = {}) {
    const absl::Status status = pool->Start(GetParam(), threads, places, 50 * kMicrosecond);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(threads, pool->threads());
  }

  template <class Condition>
  bool Eventually(const Condition& condition) {
    Deadline deadline;
    while (!condition()) {
      if (!deadline.Yield()) return false;
    }
    return true;
  }

  void DetachAndCheck(EchoLane* lane) {
    ProgressPool::Detach(lane);
    lane->detached.store(true);
  }
};

inline std::string EngineTestName(const ::testing::TestParamInfo<EngineChoice>& engine) {
  return engine.param == EngineChoice::kEpoll ? "epoll" : "io_uring";
}

}  // namespace tcpx
