// Pods whose seccomp profile denies io_uring, and hosts that allow little locked memory: the plugin works all the same,
// and one line of the log says how.
#include "tests/plugin/lifetime/sandbox.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <string>

#include "tests/plugin/lifetime/processes.h"
#include "tests/plugin/lifetime/rank.h"
#include "tests/plugin/lifetime/stream.h"

namespace tcpx {
namespace {

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
                TCPX_REQUIRE(WarningCount() == 0, LogText());
                TCPX_REQUIRE(LinesWith("engine epoll (") == 1, LogText());
                TCPX_REQUIRE(LinesWith("engine io_uring") == 0, LogText());
              }))
        << "errno " << err;
  }
}

TEST_F(SandboxTest, WhoAskedForIoUringIsWarned) {
  setenv("TCPX_ENGINE", "io_uring", 1);
  EXPECT_EQ("", RunAlone([] {
              DenyIoUring(EPERM);
              Rank rank;
              MoveBytes(&rank);
              TCPX_REQUIRE(WarningCount() == 1, LogText());
              TCPX_REQUIRE(LinesWith("WARN NET/tcpx: TCPX_ENGINE=io_uring is not to be had here: epoll") == 1,
                           LogText());
              TCPX_REQUIRE(LinesWith("engine epoll (") == 1, LogText());
            }));
}

TEST_F(SandboxTest, LittleLockedMemoryIsEnough) {
  EXPECT_EQ("", RunAlone([] {
              const rlimit limit{65536, 65536};
              TCPX_REQUIRE(setrlimit(RLIMIT_MEMLOCK, &limit) == 0);
              DropIpcLock();
              Rank rank;
              MoveBytes(&rank);
              TCPX_REQUIRE(WarningCount() == 0, LogText());
              // A ring fits or does not: what the kernel charges for one depends on its version.
              TCPX_REQUIRE(LinesWith("engine ") == 1, LogText());
            }));
}

}  // namespace
}  // namespace tcpx
