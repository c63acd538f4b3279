// Pods whose seccomp profile denies io_uring, and hosts that allow little locked memory: the plugin works all the same,
// and one line of the log says how.
#include "tests/plugin/lifetime/sandbox.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <string>

#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

void MoveBytes(Rank* rank) {
  const Ends ends = rank->ConnectToSelf();
  Transfer(&rank->net(), ends, {500000, 4, 20, true});
  rank->Close(ends);
  rank->Finalize();
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override { Mode{.threads = 2, .engine = "auto", .lanes = 4}.Apply(); }
};

TEST_F(SandboxTest, EpollTakesOverWhereIoUringIsDenied) {
  for (const int err : {EPERM, ENOSYS}) {
    EXPECT_EQ("", RunAlone([err] {
                DenyIoUring(err);
                Rank rank;
                MoveBytes(&rank);
                TCPX_REQUIRE(WarningCount() == 0, LogText());
                TCPX_REQUIRE(CountInLog("engine epoll (") == 1, LogText());
                TCPX_REQUIRE(CountInLog("engine io_uring") == 0, LogText());
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
              TCPX_REQUIRE(CountInLog("WARN NET/tcpx: TCPX_ENGINE=io_uring is not available here: epoll") == 1,
                           LogText());
              TCPX_REQUIRE(CountInLog("engine epoll (") == 1, LogText());
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
              TCPX_REQUIRE(CountInLog("engine ") == 1, LogText());
            }));
}

}  // namespace
}  // namespace tcpx
