// Accepts to which nobody comes, or not all of a connection: said once after a few seconds, and given up only where the
// rest can't come any more.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "absl/time/clock.h"
#include "tests/support/by_hand.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

// Lane 0 of four, by hand. It stays open.
void SayHello(const char* handle) {
  Hello hello;
  hello.connection_id.fill(7);
  hello.lanes = 4;
  (void)DialByHand(handle, hello);
}

struct Waiting {
  ncclResult_t Poll() {
    void* comm = nullptr;
    const ncclResult_t result = rank.net().Accept(listen, &comm);
    TCPX_REQUIRE(comm == nullptr, "somebody came");
    absl::SleepFor(absl::Milliseconds(1));
    TCPX_REQUIRE(absl::Now() < deadline, "nothing happens; ", LogText());
    return result;
  }
  void RequireLog(const std::string& part) const { TCPX_REQUIRE(LogHas(part), part, " is missing in ", LogText()); }

  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  Rank rank;
  char handle[kHandleBytesMax] = {};
  void* const listen = rank.Listen(handle);
};

class AcceptWaitTest : public ModeTest {};

TEST_P(AcceptWaitTest, NobodyComes) {
  setenv("NCCL_SOCKET_RETRY_CNT", "0", 1);
  setenv("TCPX_HELLO_TIMEOUT", "1", 1);
  EXPECT_EQ("", RunAlone([] {
              Waiting waiting;
              while (WarningCount() == 0) TCPX_REQUIRE(waiting.Poll() == ncclSuccess, LogText());
              waiting.RequireLog("no peer has come for 5 s");
              waiting.RequireLog("(lo)");
              // Late is no error, beyond all bounds of a connect.
              for (int i = 0; i < 1000; ++i) TCPX_REQUIRE(waiting.Poll() == ncclSuccess, LogText());
              TCPX_REQUIRE(WarningCount() == 1, LogText());
              waiting.rank.Finalize();
            }));
}

TEST_P(AcceptWaitTest, TheRestOfAConnectionDoesNotCome) {
  setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
  setenv("TCPX_HELLO_TIMEOUT", "4", 1);
  EXPECT_EQ("", RunAlone([] {
              Waiting waiting;
              SayHello(waiting.handle);
              while (WarningCount() == 0) TCPX_REQUIRE(waiting.Poll() == ncclSuccess, LogText());
              waiting.RequireLog("1 of 4 lanes from 127.0.0.1:");
              waiting.RequireLog("have come, and no more for 5 s");
              waiting.rank.Finalize();
            }));
}

TEST_P(AcceptWaitTest, TheRestOfAConnectionIsGivenUp) {
  setenv("NCCL_SOCKET_RETRY_CNT", "0", 1);
  setenv("TCPX_HELLO_TIMEOUT", "1", 1);
  EXPECT_EQ("", RunAlone([] {
              Waiting waiting;
              SayHello(waiting.handle);
              ncclResult_t result = ncclSuccess;
              while (result == ncclSuccess) result = waiting.Poll();
              TCPX_REQUIRE(result == ncclRemoteError, result);
              waiting.RequireLog("1 of 4 lanes from 127.0.0.1:");
              waiting.RequireLog("never all of a connection: given up after");
              TCPX_REQUIRE(waiting.Poll() == ncclRemoteError, "an error that does not stick");
              waiting.rank.Finalize();
            }));
}

INSTANTIATE_TEST_SUITE_P(Modes, AcceptWaitTest, ::testing::Values(AllModes({4})[0]), ShortModeName);

}  // namespace
}  // namespace tcpx
