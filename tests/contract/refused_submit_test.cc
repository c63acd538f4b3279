// A kernel that takes nothing of what a ring submits costs time, not a thread that spins inside Submit for ever; one
// that takes no set of setup flags is served by epoll.
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "common/clock.h"
#include "net_socket/engine/engine.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

// From here on io_uring_enter fails with `err` in this process.
bool RefuseEnter(int err) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | static_cast<uint32_t>(err)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {static_cast<unsigned short>(sizeof(filter) / sizeof(filter[0])), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// More operations than the ring has entries; one that found none is cancelled. 0: all as it must be.
int SubmitToARefusingKernel(Engine* engine, int err) {
  constexpr int kOperations = 600;
  TcpPair pair = MakeTcpPair();
  char byte;
  std::vector<IoOp> ops(kOperations);
  if (!RefuseEnter(err)) return 2;
  for (IoOp& op : ops) {
    op.kind = IoOp::Kind::kReceive;
    op.fd = pair.b.get();
    op.iov[0] = {&byte, 1};
    op.iov_count = 1;
    engine->Submit(&op);
  }
  std::vector<Completion> completions(kOperations);
  if (engine->Reap(completions.data(), kOperations, 0) != 0) return 3;
  // Also a wait without an end comes back, so that its thread can be stopped.
  if (engine->Reap(completions.data(), kOperations, -1) != 0) return 4;
  engine->Cancel(&ops.back());
  int count = 0;
  for (int tries = 0; count == 0 && tries < 10; ++tries) {
    count = engine->Reap(completions.data(), kOperations, kMillisecond);
  }
  // It waits after others for an entry, and is not given back before its turn.
  return count == 0 && ops.back().in_flight ? 0 : 5;
}

class RefusedSubmitTest : public ::testing::TestWithParam<int> {};

TEST_P(RefusedSubmitTest, SubmitAndReapReturn) {
  auto engine = MakeUringEngine();
  if (!engine.ok()) GTEST_SKIP() << "no io_uring here: " << engine.status();
  const pid_t child = fork();
  ASSERT_LE(0, child);
  if (child == 0) {
    alarm(60);
    auto own = MakeUringEngine();  // The parent's ring is not passed on.
    _exit(own.ok() ? SubmitToARefusingKernel(own->get(), GetParam()) : 9);
  }
  int status = 0;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(0, WEXITSTATUS(status));
}

INSTANTIATE_TEST_SUITE_P(Errors, RefusedSubmitTest, ::testing::Values(EBUSY, EAGAIN, EPERM), [](const auto& mode) {
  return mode.param == EBUSY ? "EBUSY" : mode.param == EAGAIN ? "EAGAIN" : "EPERM";
});

TEST(ProbeTest, AKernelThatTakesNoRungIsServedByEpoll) {
  setenv("TCPX_TEST_URING_RUNG", std::to_string(kUringRungs).c_str(), 1);
  for (const EngineChoice choice : {EngineChoice::kAuto, EngineChoice::kIoUring}) {
    std::string reason;
    EXPECT_EQ(EngineChoice::kEpoll, ProbeEngine(choice, &reason));
    EXPECT_EQ(0u, reason.find("io_uring_setup: ")) << reason;
  }
  EXPECT_FALSE(MakeUringEngine().ok());
  unsetenv("TCPX_TEST_URING_RUNG");
}

}  // namespace
}  // namespace tcpx
