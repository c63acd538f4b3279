// Connects that come to nothing: tried again as NCCL's own transport does, without a sleep in the calling thread, then
// an error that names the address tried and the interface used.
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/time/clock.h"
#include "net_socket/message/wire.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

// One connect of a rank, polled by hand.
struct Attempt {
  explicit Attempt(const FakeAcceptor& stranger) { stranger.WriteHandle(handle); }

  ncclResult_t Poll() { return rank.net().Connect(rank.context(), 0, handle, &comm); }
  void RequireError(const FakeAcceptor& stranger, const std::string& why) const {
    const std::string log = LogText();
    TCPX_REQUIRE(WarningCount() == 1, log);
    TCPX_REQUIRE(log.find("WARN NET/tcpx: connect to " + stranger.address().ToString() + " through lo (127.0.0.1): ") !=
                     std::string::npos,
                 log);
    TCPX_REQUIRE(log.find(why) != std::string::npos, log);
  }

  Rank rank;
  char handle[kHandleBytesMax] = {};
  void* comm = nullptr;
};

void AnswerHello(int fd) {
  HearHello(fd);
  SayByHand(fd, Encoded(Answer()));
}

class ConnectFailureTest : public ModeTest {
 protected:
  void SetUp() override {
    ModeTest::SetUp();
    setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "10", 1);
  }
};

TEST_P(ConnectFailureTest, RefusedForGood) {
  EXPECT_EQ("", RunAlone([] {
              const FakeAcceptor stranger(false);
              Attempt attempt(stranger);
              ncclResult_t result = ncclSuccess;
              int polls = 0;
              for (; result == ncclSuccess; ++polls) result = attempt.Poll();
              TCPX_REQUIRE(result == ncclRemoteError && attempt.comm == nullptr, result);
              attempt.RequireError(stranger, "Connection refused (111)");
              // Four attempts with 60 ms of pauses, and no pause inside a call: on a busy machine not each time.
              for (int again = 0; polls <= 8; ++again) {
                TCPX_REQUIRE(again < 10, polls);
                for (polls = 0, result = ncclSuccess; result == ncclSuccess; ++polls) result = attempt.Poll();
              }
              attempt.rank.Finalize();
            }));
}

TEST_P(ConnectFailureTest, RefusedAtFirst) {
  setenv("NCCL_SOCKET_RETRY_CNT", "100", 1);
  EXPECT_EQ("", RunAlone([] {
              FakeAcceptor stranger(false);
              Attempt attempt(stranger);
              const absl::Time listens_at = absl::Now() + absl::Milliseconds(50);
              bool listens = false;
              int answered = 0;
              while (attempt.comm == nullptr) {
                TCPX_REQUIRE(attempt.Poll() == ncclSuccess, LogText());
                if (!listens && absl::Now() > listens_at) {
                  stranger.Listen();
                  listens = true;
                }
                const int fd = listens ? stranger.TryAccept() : -1;
                if (fd < 0) continue;
                AnswerHello(fd);  // It stays open until the process ends.
                ++answered;
              }
              TCPX_REQUIRE(answered == 4, answered, " lanes");
              TCPX_REQUIRE(WarningCount() == 0, LogText());
              attempt.rank.CloseSend(attempt.comm);
            }));
}

TEST_P(ConnectFailureTest, ResetDuringTheHello) {
  EXPECT_EQ("", RunAlone([] {
              FakeAcceptor stranger;
              Attempt attempt(stranger);
              ncclResult_t result = ncclSuccess;
              int resets = 0;
              while (result == ncclSuccess) {
                result = attempt.Poll();
                const int fd = stranger.TryAccept();
                if (fd < 0) continue;
                const linger at_once = {1, 0};
                TCPX_REQUIRE(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
                pollfd hello{fd, POLLIN, 0};
                TCPX_REQUIRE(poll(&hello, 1, 60000) == 1);
                close(fd);
                ++resets;
              }
              TCPX_REQUIRE(result == ncclRemoteError, result);
              TCPX_REQUIRE(resets == 4, resets, " attempts");
              attempt.RequireError(stranger, "Connection reset by peer (104)");
              attempt.rank.Finalize();
            }));
}

TEST_P(ConnectFailureTest, NoAnswer) {
  setenv("NCCL_SOCKET_RETRY_CNT", "1", 1);
  setenv("TCPX_HELLO_TIMEOUT", "1", 1);
  EXPECT_EQ("", RunAlone([] {
              FakeAcceptor stranger;
              Attempt attempt(stranger);
              ncclResult_t result = ncclSuccess;
              while (result == ncclSuccess) {
                result = attempt.Poll();
                absl::SleepFor(absl::Milliseconds(1));
              }
              TCPX_REQUIRE(result == ncclRemoteError, result);
              attempt.RequireError(stranger, "does not answer the hello");
              attempt.rank.Finalize();
            }));
}

// One for all channels to a peer, and everything else of the communicator fails with them, here and at every peer that
// it is connected to.
TEST_P(ConnectFailureTest, FailsItsCommunicatorEverywhere) {
  EXPECT_EQ("", RunTogether(
                    [](Control& peer) {
                      Rank rank;
                      const Ends ends = rank.Connect(peer);
                      const FakeAcceptor stranger(false);
                      char handles[4][kHandleBytesMax] = {};
                      for (auto& handle : handles) stranger.WriteHandle(handle);
                      for (auto& handle : handles) {
                        void* comm = nullptr;
                        TCPX_REQUIRE(rank.net().Connect(rank.context(), 0, handle, &comm) == ncclSuccess, LogText());
                      }
                      for (auto& handle : handles) {
                        Ends none;
                        TCPX_REQUIRE(rank.Poll(handle, nullptr, &none) == ncclRemoteError, LogText());
                      }
                      absl::SleepFor(absl::Milliseconds(300));  // No event: a second line would be late.
                      TCPX_REQUIRE(WarningCount() == 1, LogText());
                      char own[kHandleBytesMax] = {};
                      void* listen = nullptr;
                      void* comm = nullptr;
                      TCPX_REQUIRE(rank.net().Listen(rank.context(), 0, own, &listen) == ncclSuccess);
                      TCPX_REQUIRE(rank.net().Accept(listen, &comm) == ncclRemoteError, "waits for nobody");
                      peer.Await('d');
                      rank.Close(ends);
                      rank.Finalize();
                    },
                    [](Control& peer) {
                      Rank rank;
                      const Ends ends = rank.Connect(peer);
                      char own[kHandleBytesMax] = {};
                      Ends none;
                      TCPX_REQUIRE(rank.Poll(nullptr, rank.Listen(own), &none) == ncclRemoteError, LogText());
                      TCPX_REQUIRE(WarningCount() == 1, LogText());
                      TCPX_REQUIRE(LogHas("Connection refused (111)"), LogText());
                      peer.Tell('d');
                      rank.Close(ends);
                      rank.Finalize();
                    }));
}

// A peer that drops the SYNs, or accepts and never answers, is named long before the end, once.
TEST_P(ConnectFailureTest, WithoutProgress) {
  setenv("TCPX_HELLO_TIMEOUT", "600", 1);
  EXPECT_EQ("", RunAlone([] {
              FakeAcceptor stranger;
              Rank rank;
              char handles[3][kHandleBytesMax] = {};
              for (auto& handle : handles) stranger.WriteHandle(handle);
              const absl::Time started = absl::Now();
              while (WarningCount() == 0) {
                for (auto& handle : handles) {
                  void* comm = nullptr;
                  TCPX_REQUIRE(rank.net().Connect(rank.context(), 0, handle, &comm) == ncclSuccess, LogText());
                }
                absl::SleepFor(absl::Milliseconds(1));
                TCPX_REQUIRE(absl::Now() < started + kHungAfter / 2, "nothing was said");
              }
              TCPX_REQUIRE(absl::Now() > started + absl::Milliseconds(4900));
              absl::SleepFor(absl::Milliseconds(500));  // That no other line comes is no event.
              TCPX_REQUIRE(WarningCount() == 1, LogText());
              for (const char* part : {"through lo (127.0.0.1)", "try 1 of 4", "does not answer the hello", "firewall",
                                       "TCPX_PORT_RANGE", " s at the latest"}) {
                TCPX_REQUIRE(LogHas(part), part, " is missing in ", LogText());
              }
              rank.Finalize();
            }));
}

// A handle from another host with an address that every host has.
TEST_P(ConnectFailureTest, ThePeersAddressIsOnesOwn) {
  setenv("NCCL_SOCKET_RETRY_CNT", "34", 1);
  setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "60000", 1);
  EXPECT_EQ("", RunAlone([] {
              const FakeAcceptor stranger(false);
              Attempt attempt(stranger);
              WriteHostMark(77, attempt.handle);
              // Before it could be tried a second time.
              const absl::Time deadline = absl::Now() + absl::Seconds(30);
              ncclResult_t result = ncclSuccess;
              while (result == ncclSuccess) {
                result = attempt.Poll();
                TCPX_REQUIRE(absl::Now() < deadline, "not at once");
              }
              TCPX_REQUIRE(result == ncclRemoteError && WarningCount() == 1, LogText());
              for (const char* part : {"one of this host's own (lo)", "Connection refused",
                                       "another host or container. NCCL_SOCKET_IFNAME=lo chooses it"}) {
                TCPX_REQUIRE(LogHas(part), part, " is missing in ", LogText());
              }
              TCPX_REQUIRE(LogText().find("?.") == std::string::npos, LogText());
              attempt.rank.Finalize();
            }));
}

// With a port range it may be this process's own listening socket that answers.
TEST_P(ConnectFailureTest, ThePeersAddressIsThisProcesssOwn) {
  setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1000", 1);
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              char handle[kHandleBytesMax] = {};
              rank.Listen(handle);
              WriteHostMark(77, handle);
              handle[33] ^= 1;  // in the ticket
              Ends none;
              TCPX_REQUIRE(rank.Poll(handle, nullptr, &none) != ncclSuccess);
              TCPX_REQUIRE(LogHas("one of this host's own (lo)"), LogText());
              rank.Finalize();
            }));
}

INSTANTIATE_TEST_SUITE_P(Modes, ConnectFailureTest, ::testing::Values(AllModes({4})[0]), ShortModeName);

}  // namespace
}  // namespace tcpx
