// Pods whose seccomp profile denies io_uring, and hosts that allow little locked memory: the plugin works all the same,
// and one line of the log says how.
#include <errno.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "tests/plugin/lifetime/processes.h"
#include "tests/plugin/lifetime/rank.h"
#include "tests/plugin/lifetime/stream.h"

namespace tcpx {
namespace {

// For this process and its threads, for good. seccomp(2).
void DenyIoUring(int err) {
  const uint32_t denied = SECCOMP_RET_ERRNO | (static_cast<uint32_t>(err) & SECCOMP_RET_DATA);
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_io_uring_setup, 0, 2),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_io_uring_register, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, denied),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  TCPX_REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    fprintf(stderr, "SKIPPED: this machine takes no seccomp filter\n");
    _exit(0);
  }
  errno = 0;
  TCPX_REQUIRE(syscall(SYS_io_uring_setup, 1, nullptr) == -1 && errno == err, errno);
}

int LinesWith(const std::string& text) {
  int count = 0;
  const std::string log = LogText();
  for (size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++count;
  return count;
}

void MoveBytes(Rank* rank) {
  const Ends ends = rank->ConnectToSelf();
  Stream send(&rank->net(), Stream::Way::kSend, ends.send, {500000, 4, 20, true});
  Stream recv(&rank->net(), Stream::Way::kReceive, ends.recv, {500000, 4, 20, true});
  while (!send.complete() || !recv.complete()) {
    TCPX_REQUIRE(send.Step() == ncclSuccess && recv.Step() == ncclSuccess, LogText());
  }
  send.Deregister();
  recv.Deregister();
  rank->Close(ends);
  rank->Finalize();
  TCPX_REQUIRE(WarningCount() == 0, LogText());
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("TCPX_THREADS", "2", 1);
    setenv("TCPX_LANES", "4", 1);
    unsetenv("TCPX_ENGINE");
  }
};

TEST_F(SandboxTest, EpollTakesOverWhereIoUringIsDenied) {
  for (const int err : {EPERM, ENOSYS}) {
    EXPECT_EQ("", RunAlone([err] {
                DenyIoUring(err);
                Rank rank;
                MoveBytes(&rank);
                TCPX_REQUIRE(LinesWith("engine epoll (") == 1, LogText());
                TCPX_REQUIRE(LinesWith("engine io_uring") == 0, LogText());
              }))
        << "errno " << err;
  }
}

TEST_F(SandboxTest, LittleLockedMemoryIsEnough) {
  EXPECT_EQ("", RunAlone([] {
              const rlimit limit{65536, 65536};
              TCPX_REQUIRE(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
              Rank rank;
              MoveBytes(&rank);
              TCPX_REQUIRE(LinesWith("engine ") == 1, LogText());
            }));
}

}  // namespace
}  // namespace tcpx
