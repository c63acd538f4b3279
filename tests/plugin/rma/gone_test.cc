// A peer of a group that is dead, that aborts or that asks for what is not there: the others get an error, in every
// later call.
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <chrono>
#include <string>

#include "tests/plugin/rma/rma_rank.h"
#include "tests/support/deadline.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

using Peer = void (*)(RmaRank* rank, Control* other);

// Moves until the group has failed, and sees that it stays so.
void ExpectAnError(RmaRank* rank) {
  const Deadline deadline;
  ncclResult_t result = ncclSuccess;
  while (result == ncclSuccess) {
    result = rank->rma->Progress(rank->contexts);
    TCPX_REQUIRE(deadline.Yield(), "no error came; ", LogText());
  }
  TCPX_REQUIRE(rank->failed());
  TCPX_REQUIRE(rank->Put() == nullptr);
  TCPX_REQUIRE(rank->rma->Progress(rank->contexts) == result);
  TCPX_REQUIRE(WarningCount() >= 1);
}

void Die(RmaRank*, Control* other) {
  other->Await('d');
  QuickExit();
}

// Its window is open: a rank that waits for its signal waits for ever.
void Abort(RmaRank* rank, Control* other) {
  other->Await('d');
  rank->Close();
}

// What the group refuses at the peer's end ends it here too.
void AskTooMuch(RmaRank* rank, Control* other) {
  other->Await('d');
  void* request = nullptr;
  const RmaRange beyond = {rank->mhandle, 0, rank->mhandle, RmaRank::kBytes - 7, 8, rank->peer()};
  RmaRank::Succeeds(rank->rma->Iput(rank->contexts, 0, beyond, 0, &request), "iput");
  ExpectAnError(rank);
  rank->Close();
}

class RmaGoneTest : public ModeTest {
 protected:
  void SetUp() override {
    setenv("TCPX_RMA", "1", 1);
    ModeTest::SetUp();
  }
  static std::string Run(Peer peer) {
    return RunTogether(
        [](Control& other) {
          RmaRank rank(&other, 0);
          void* const request = rank.Put();
          TCPX_REQUIRE(request != nullptr);
          int done = 0;
          const Deadline deadline;
          while (done == 0) {
            RmaRank::Succeeds(rank.rma->Test(rank.group, request, &done), "test");
            TCPX_REQUIRE(deadline.Yield());
          }
          other.Await('g');
          other.Tell('d');
          ExpectAnError(&rank);
          rank.Close();
        },
        [peer](Control& other) {
          RmaRank rank(&other, 1);
          const Deadline deadline;
          while (rank.Word(0) == 0) {
            RmaRank::Succeeds(rank.rma->Progress(rank.contexts), "rmaProgress");
            TCPX_REQUIRE(deadline.Yield());
          }
          other.Tell('g');
          peer(&rank, &other);
        });
  }
};

TEST_P(RmaGoneTest, ADeadPeer) { EXPECT_EQ("", Run(&Die)); }

TEST_P(RmaGoneTest, APeerThatAborts) { EXPECT_EQ("", Run(&Abort)); }

TEST_P(RmaGoneTest, APeerThatAsksForWhatIsNotThere) { EXPECT_EQ("", Run(&AskTooMuch)); }

// ncclCommDestroy: one rank is sooner than the other, whose window is open and unused.
TEST_P(RmaGoneTest, AnOrderlyEndIsNone) {
  EXPECT_EQ("", RunTogether(
                    [](Control& other) {
                      RmaRank rank(&other, 0);
                      other.Await('c');
                      // Twice as long as the grace that a group has whose peer has aborted.
                      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
                      while (std::chrono::steady_clock::now() < until) {
                        RmaRank::Succeeds(rank.rma->Progress(rank.contexts), "rmaProgress");
                        sched_yield();
                      }
                      TCPX_REQUIRE(!rank.failed());
                      TCPX_REQUIRE(WarningCount() == 0);
                      RmaRank::Succeeds(rank.rma->DeregMrSym(rank.group, rank.mhandle), "deregMrSym");
                      rank.Close();
                    },
                    [](Control& other) {
                      RmaRank rank(&other, 1);
                      RmaRank::Succeeds(rank.rma->DeregMrSym(rank.group, rank.mhandle), "deregMrSym");
                      rank.Close();
                      other.Tell('c');
                    }));
}

INSTANTIATE_TEST_SUITE_P(EveryMode, RmaGoneTest, ::testing::ValuesIn(AllModes({1, 4})), ShortModeName);

}  // namespace
}  // namespace tcpx
