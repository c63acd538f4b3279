// A process with a group forks: the child gets errors instead of hangs, holds nothing of the group, and disturbs its
// parent by nothing.
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <bitset>
#include <cstring>
#include <functional>
#include <string>

#include "tests/plugin/rma/rma_rank.h"
#include "tests/support/deadline.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/talking_child.h"

namespace tcpx {
namespace {

constexpr int kDescriptorsSeen = 512;
using Descriptors = std::bitset<kDescriptorsSeen>;

// By fcntl: nothing is opened or allocated, so that it may be asked after a fork.
Descriptors OpenNow() {
  Descriptors open;
  for (int fd = 0; fd < kDescriptorsSeen; ++fd) open[static_cast<size_t>(fd)] = fcntl(fd, F_GETFD) >= 0;
  return open;
}

// A third of the parts.
void PutSome(RmaRank* rank, int third) {
  const Deadline deadline;
  for (int i = 0; i < RmaRank::kParts / 3; ++i) {
    void* const request = rank->PutPart(third * RmaRank::kParts / 3 + i);
    TCPX_REQUIRE(request != nullptr, LogText());
    for (int done = 0; done == 0;) {
      RmaRank::Succeeds(rank->rma->Test(rank->group, request, &done), "test");
      TCPX_REQUIRE(deadline.Yield(), LogText());
    }
  }
}

// The other rank makes no call meanwhile, but for the end.
void BeThere(Control& peer) {
  RmaRank rank(&peer, 1);
  peer.Await('e');
  TCPX_REQUIRE(rank.Word(0) > 0);
  TCPX_REQUIRE(!rank.failed(), LogText());
  RmaRank::Succeeds(rank.rma->DeregMrSym(rank.group, rank.mhandle), "deregMrSym");
  peer.Tell('e');
  rank.Close();
}

class RmaForkTest : public ModeTest {
 protected:
  void SetUp() override {
    setenv("TCPX_RMA", "1", 1);
    ModeTest::SetUp();
  }
  // `child` runs in a child of rank 0, which puts before and after that; `before`: what was open before it loaded the
  // plugin. `look` gets what the child wrote to its standard error.
  static std::string Run(const std::function<void(RmaRank* rank, const Descriptors& before)>& child,
                         const std::function<void(const std::string& text)>& look) {
    return RunTogether(
        [&](Control& peer) {
          const Descriptors before = OpenNow();
          RmaRank rank(&peer, 0);
          PutSome(&rank, 0);
          TalkingChild forked([&] { child(&rank, before); });
          TCPX_REQUIRE(forked.pid() > 0, strerror(errno));
          PutSome(&rank, 1);
          TCPX_REQUIRE(ExitCodeOf(forked.pid(), kHungAfter / 4) == 0, "the child's exit code; ", forked.Text());
          PutSome(&rank, 2);
          look(forked.Text());
          TCPX_REQUIRE(WarningCount() == 0, LogText());
          peer.Tell('e');
          peer.Await('e');
          RmaRank::Succeeds(rank.rma->DeregMrSym(rank.group, rank.mhandle), "deregMrSym");
          rank.Close();
        },
        BeThere);
  }
};

void RequireSilence(const std::string& text) { TCPX_REQUIRE(text.find("tcpx") == std::string::npos, text); }

TEST_P(RmaForkTest, TheChildHasNoDescriptorOfTheGroup) {
  const auto has_none = [](RmaRank*, const Descriptors& before) {
    constexpr size_t kPipe = 2;  // to its parent
    TCPX_REQUIRE((OpenNow() & ~before).count() == kPipe, "\n", OpenNow().to_string(), "\n", before.to_string());
  };
  EXPECT_EQ("", Run(has_none, RequireSilence));
}

// Each call that can report an error does; what ends something succeeds, and ends nothing.
void RequireRefusals(RmaRank* rank) {
  RmaClient& rma = *rank->rma;
  void* out = nullptr;
  int done = 0;
  char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
  TCPX_REQUIRE(rank->Put() == nullptr);
  const RmaRange own = {rank->mhandle, 0, rank->mhandle, 8, 8, 0};
  TCPX_REQUIRE(rma.Iput(rank->contexts, 0, own, 0, &out) == ncclSystemError);
  TCPX_REQUIRE(rma.Iget(rank->contexts, 0, own, 0, &out) == ncclSystemError);
  TCPX_REQUIRE(rma.Iflush(rank->contexts, 0, rank->mhandle, 1, &out) == ncclSystemError);
  TCPX_REQUIRE(rma.Test(rank->group, &out, &done) == ncclSystemError);
  TCPX_REQUIRE(rma.Progress(rank->contexts) == ncclSystemError);
  TCPX_REQUIRE(rank->failed());
  TCPX_REQUIRE(rma.Init(&out, RmaRank::kCommId, &RecordLog) == ncclSystemError);
  TCPX_REQUIRE(rma.Listen(rank->context(), 0, handle, &out) == ncclSystemError);
  TCPX_REQUIRE(rma.CreateContext(rank->group, 1, NCCL_NET_TRAFFIC_CLASS_UNDEF, &out) == ncclSystemError);
  TCPX_REQUIRE(rma.RegMrSym(rank->group, handle, 8, NCCL_PTR_CUDA, 0, &out) == ncclSystemError);
}

TEST_P(RmaForkTest, EveryCallInTheChildIsRefused) {
  const auto calls = [](RmaRank* rank, const Descriptors&) {
    RequireRefusals(rank);
    RmaRank::Succeeds(rank->rma->DeregMrSym(rank->group, rank->mhandle), "deregMrSym");
    rank->Close();
  };
  EXPECT_EQ("", Run(calls, [](const std::string& text) {
              TCPX_REQUIRE(text.find("forked child") != std::string::npos, text);
            }));
}

// As data loaders do, which never heard of the plugin.
TEST_P(RmaForkTest, TheChildEndsInSilence) {
  EXPECT_EQ("", Run([](RmaRank*, const Descriptors&) { exit(0); }, RequireSilence));
}

TEST_P(RmaForkTest, TheChildClosesInSilence) {
  EXPECT_EQ("", Run(
                    [](RmaRank* rank, const Descriptors&) {
                      RmaRank::Succeeds(rank->rma->DeregMrSym(rank->group, rank->mhandle), "deregMrSym");
                      rank->Close();
                    },
                    RequireSilence));
}

INSTANTIATE_TEST_SUITE_P(Modes, RmaForkTest, ::testing::ValuesIn(AllModes({4})), ShortModeName);

}  // namespace
}  // namespace tcpx
