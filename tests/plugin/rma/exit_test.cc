// exit() with a group open: the process must end, at once, and its peer must hear of it.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <thread>

#include "absl/time/clock.h"
#include "tests/plugin/rma/rma_rank.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"

namespace tcpx {
namespace {

// Far above what it takes, far below TCPX_LINGER as set here.
const absl::Duration kAtOnce = TimeScale() * absl::Seconds(25);

class RmaExitTest : public ModeTest {
 protected:
  void SetUp() override {
    setenv("TCPX_RMA", "1", 1);
    setenv("TCPX_LINGER", "600", 1);
    ModeTest::SetUp();
  }
};

// Puts until the group has failed, which it does when the other process has gone.
void PutToTheEnd(Control& peer) {
  RmaRank rank(&peer, 1);
  const Deadline deadline(20);
  while (!rank.failed()) {
    void* const request = rank.Put();
    int done = request == nullptr ? 1 : 0;
    while (done == 0 && rank.rma->Test(rank.group, request, &done) == ncclSuccess) TCPX_REQUIRE(deadline.Yield());
    TCPX_REQUIRE(deadline.Yield(), "no error came; ", LogText());
  }
  rank.Close();
}

TEST_P(RmaExitTest, WithPutsPending) {
  const auto leave = [](Control& peer) {
    auto* rank = new RmaRank(&peer, 0);  // Not destroyed by exit.
    for (int i = 0; i < 20; ++i) TCPX_REQUIRE(rank->Put() != nullptr, LogText());
    exit(0);
  };
  EXPECT_EQ("", RunTogether(leave, PutToTheEnd, kAtOnce));
}

// NCCL's progress thread is still at work when main returns.
TEST_P(RmaExitTest, WithAnotherThreadInside) {
  const auto leave = [](Control& peer) {
    auto* rank = new RmaRank(&peer, 0);
    auto* puts = new std::atomic<int>(0);
    std::thread([rank, puts] {
      for (;;) {
        void* const request = rank->Put();
        int done = 0;
        while (request != nullptr && done == 0 && rank->rma->Test(rank->group, request, &done) == ncclSuccess) {
          (void)rank->rma->Progress(rank->contexts);
        }
        *puts += done;
      }
    }).detach();
    const Deadline deadline(20);
    while (*puts < 20) TCPX_REQUIRE(deadline.Yield(), LogText());
    exit(0);
  };
  EXPECT_EQ("", RunTogether(leave, PutToTheEnd, kAtOnce));
}

// The other rank's port takes the dial and says nothing.
TEST_P(RmaExitTest, WhileTheGroupConnects) {
  EXPECT_EQ("", RunAlone(
                    [] {
                      auto* rma = Must(RmaClient::Open(kPluginPath)).release();
                      void* context = nullptr;
                      RmaRank::Succeeds(rma->Init(&context, RmaRank::kCommId, &RecordLog), "init");
                      static const FakeAcceptor other;
                      static std::array<char, NCCL_NET_HANDLE_MAXSIZE> handles[2] = {};
                      void* listen = nullptr;
                      RmaRank::Succeeds(rma->Listen(context, 0, handles[0].data(), &listen), "listen");
                      other.WriteHandle(handles[1].data());
                      std::thread([rma, listen] {
                        static void* all[] = {handles[0].data(), handles[1].data()};
                        static void* group = nullptr;
                        (void)rma->Connect(nullptr, all, 2, 0, listen, &group);
                        // A thread that ends while leaks are looked for has let go of what libc frees last.
                        for (;;) pause();
                      }).detach();
                      (void)other.Accept();
                      exit(0);
                    },
                    kAtOnce));
}

INSTANTIATE_TEST_SUITE_P(Modes, RmaExitTest, ::testing::ValuesIn(AllModes({1, 4})), ShortModeName);

}  // namespace
}  // namespace tcpx
