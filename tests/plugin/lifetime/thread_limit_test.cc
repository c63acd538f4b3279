// Where the kernel gives no thread (RLIMIT_NPROC, podPidsLimit), listen says so or the plugin goes on with fewer.
//
// Story: std::thread threw through NCCL, and the application ended in std::terminate.
#include <dlfcn.h>
#include <errno.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <climits>
#include <string>

#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/stream.h"

namespace {

std::atomic<int> g_threads_left{INT_MAX};

}  // namespace

// Found by the plugin before libc's, because this program exports it.
extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*run)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (g_threads_left.fetch_sub(1) <= 0) return EAGAIN;
  return create(thread, attributes, run, argument);
}

namespace tcpx {
namespace {

void MoveBytes(Rank* rank) {
  const Ends ends = rank->ConnectToSelf();
  Transfer(&rank->net(), ends, {500000, 4, 20, true});
  rank->Close(ends);
}

class ThreadLimitTest : public ::testing::Test {
 protected:
  void SetUp() override { Mode{.threads = 2, .engine = "auto", .lanes = 4}.Apply(); }
};

TEST_F(ThreadLimitTest, ListenWithoutAnyThreadSaysWhatToRaiseAndLaterWorks) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              g_threads_left = 0;
              char handle[kHandleBytesMax] = {};
              void* listen = nullptr;
              TCPX_REQUIRE(rank.net().Listen(rank.context(), 0, handle, &listen) == ncclSystemError);
              TCPX_REQUIRE(listen == nullptr);
              TCPX_REQUIRE(LogHas("the housekeeping thread can't be started") && LogHas("podPidsLimit"), LogText());
              g_threads_left = INT_MAX;
              MoveBytes(&rank);
              rank.Finalize();
            }));
}

TEST_F(ThreadLimitTest, WithoutAPoolTheCallerDrives) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              g_threads_left = 1;
              MoveBytes(&rank);
              TCPX_REQUIRE(LogHas("mode caller-driven instead") && LogHas("podPidsLimit"), LogText());
              TCPX_REQUIRE(WarningCount() == 1, LogText());
              rank.Finalize();
            }));
}

TEST_F(ThreadLimitTest, APoolMayHaveFewerThreads) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              g_threads_left = 2;
              MoveBytes(&rank);
              TCPX_REQUIRE(LogHas("going on with 1 progress threads instead of 2"), LogText());
              TCPX_REQUIRE(LogHas("mode pool of 1 progress thread ("), LogText());
              rank.Finalize();
            }));
}

}  // namespace
}  // namespace tcpx
