// engine_contract.h: the fixture of the suite that every Engine passes; the parameter is the engine's name.
//
// Threads: as gtest. Errors: SetUp skips, with the reason, where the kernel refuses io_uring.
#pragma once

#include <errno.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "net_socket/engine/engine.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_engine.h"
#include "tests/support/seed.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {

// "io_uring", or "io_uring_rung_N": with the setup flags of an older kernel (kUringRungs).
inline int RungOf(const std::string& name) { return name == "io_uring" ? 0 : name.back() - '0'; }

class EngineContractTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    if (name == "fake") {
      engine_ = MakeFakeEngine(TestSeed(), 700);
      return;
    }
    const bool uring = name != "epoll";
    auto made = uring ? MakeUringEngineFrom(RungOf(name)) : MakeEpollEngine();
    if (uring && !made.ok()) GTEST_SKIP() << "no io_uring here: " << made.status();
    ASSERT_TRUE(made.ok()) << made.status();
    engine_ = *std::move(made);
    EXPECT_STREQ(uring ? "io_uring" : "epoll", engine_->name());
  }

  void Receive(IoOp* op, int fd, char* data, size_t bytes) { Start(op, IoOp::Kind::kReceive, fd, data, bytes); }
  void Send(IoOp* op, int fd, const char* data, size_t bytes) {
    Start(op, IoOp::Kind::kSend, fd, const_cast<char*>(data), bytes);
  }
  void Start(IoOp* op, IoOp::Kind kind, int fd, char* data, size_t bytes) {
    op->kind = kind;
    op->fd = fd;
    op->iov[0] = {data, bytes};
    op->iov_count = 1;
    engine_->Submit(op);
  }

  // What the engine gives within the deadline: at least one completion.
  std::vector<Completion> ReapSome(int max = 64) {
    std::vector<Completion> completions(static_cast<size_t>(max));
    Deadline deadline;
    int count = 0;
    while (count == 0 && !deadline.Over()) count = engine_->Reap(completions.data(), max, kTick);
    EXPECT_LT(0, count) << "nothing completed in time";
    completions.resize(static_cast<size_t>(count));
    return completions;
  }

  // The result of `op`, which is the only one with the engine.
  int Result(IoOp* op) {
    std::vector<Completion> completions = ReapSome();
    if (completions.size() != 1) return -EINVAL;
    EXPECT_EQ(op, completions[0].op);
    EXPECT_FALSE(op->in_flight);
    return completions[0].result;
  }

  // Nothing is or becomes ready.
  void ExpectNothing() {
    Completion completions[8];
    for (int i = 0; i < 3; ++i) EXPECT_EQ(0, engine_->Reap(completions, 8, i == 0 ? 0 : kMillisecond));
  }

  // Receives exactly `bytes`, however many operations that takes.
  std::string ReceiveAll(int fd, size_t bytes) {
    std::string all(bytes, '?');
    IoOp op;
    for (size_t have = 0; have < bytes;) {
      Receive(&op, fd, &all[have], bytes - have);
      const int result = Result(&op);
      if (result <= 0) return "failed: " + std::to_string(result);
      have += static_cast<size_t>(result);
    }
    return all;
  }

  static constexpr int64_t kTick = 5 * kMillisecond;

  std::unique_ptr<Engine> engine_;
};

}  // namespace tcpx
