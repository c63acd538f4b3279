// Connects that come to nothing: tried again as NCCL's own transport does, without a sleep in the calling thread, then
// an error that names the address tried and the interface used.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/time/clock.h"
#include "common/address.h"
#include "net_socket/message/host_mark.h"
#include "net_socket/message/wire.h"
#include "tests/plugin/lifetime/mode_test.h"
#include "tests/plugin/lifetime/processes.h"
#include "tests/plugin/lifetime/rank.h"

namespace tcpx {
namespace {

// Somebody at an address that a handle names, who is no plugin.
class Stranger {
 public:
  Stranger() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TCPX_REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    handle_.address = *LocalAddress(fd_);
  }
  ~Stranger() { close(fd_); }

  void Listen() { TCPX_REQUIRE(listen(fd_, 16) == 0); }
  // -1: nobody is there.
  int Accept() { return accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }
  std::string address() const { return handle_.address.ToString(); }
  void WriteHandle(char* out) const { EncodeHandle(handle_, out); }

 private:
  const int fd_;
  Handle handle_;
};

// One connect of a rank, polled by hand.
struct Attempt {
  explicit Attempt(const Stranger& stranger) { stranger.WriteHandle(handle); }

  ncclResult_t Poll() { return rank.net().Connect(rank.context(), 0, handle, &comm); }
  void RequireError(const Stranger& stranger, const std::string& why) const {
    const std::string log = LogText();
    TCPX_REQUIRE(WarningCount() == 1, log);
    TCPX_REQUIRE(
        log.find("WARN NET/tcpx: connect to " + stranger.address() + " through lo (127.0.0.1): ") != std::string::npos,
        log);
    TCPX_REQUIRE(log.find(why) != std::string::npos, log);
  }

  Rank rank;
  char handle[kHandleBytesMax] = {};
  void* comm = nullptr;
};

void AnswerHello(int fd) {
  char hello[kHelloBytes];
  TCPX_REQUIRE(recv(fd, hello, sizeof(hello), MSG_WAITALL) == sizeof(hello));
  char answer[kAnswerBytesMax];
  const size_t length = EncodeAnswer(Answer(), answer);
  TCPX_REQUIRE(send(fd, answer, length, MSG_NOSIGNAL) == static_cast<ssize_t>(length));
}

class ConnectFailureTest : public ModeTest {
 protected:
  void SetUp() override {
    ModeTest::SetUp();
    setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "10", 1);
  }
  void TearDown() override {
    for (const char* name : {"NCCL_SOCKET_RETRY_CNT", "NCCL_SOCKET_RETRY_SLEEP_MSEC", "TCPX_HELLO_TIMEOUT"}) {
      unsetenv(name);
    }
  }
};

TEST_P(ConnectFailureTest, RefusedForGood) {
  EXPECT_EQ("", RunAlone([] {
              const Stranger stranger;
              Attempt attempt(stranger);
              ncclResult_t result = ncclSuccess;
              int polls = 0;
              for (; result == ncclSuccess; ++polls) result = attempt.Poll();
              TCPX_REQUIRE(result == ncclRemoteError && attempt.comm == nullptr, result);
              // Four attempts with 60 ms of pauses, none of which was spent inside a call.
              TCPX_REQUIRE(polls > 8, polls);
              attempt.RequireError(stranger, "Connection refused (111)");
              attempt.rank.Finalize();
            }));
}

TEST_P(ConnectFailureTest, RefusedAtFirst) {
  setenv("NCCL_SOCKET_RETRY_CNT", "100", 1);
  EXPECT_EQ("", RunAlone([] {
              Stranger stranger;
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
                const int fd = listens ? stranger.Accept() : -1;
                if (fd < 0) continue;
                AnswerHello(fd);  // It stays open until the process ends.
                ++answered;
              }
              TCPX_REQUIRE(answered == 4, answered, " lanes");
              TCPX_REQUIRE(WarningCount() == 0, LogText());
              TCPX_REQUIRE(attempt.rank.net().CloseSend(attempt.comm) == ncclSuccess);
            }));
}

TEST_P(ConnectFailureTest, ResetDuringTheHello) {
  EXPECT_EQ("", RunAlone([] {
              Stranger stranger;
              stranger.Listen();
              Attempt attempt(stranger);
              ncclResult_t result = ncclSuccess;
              int resets = 0;
              while (result == ncclSuccess) {
                result = attempt.Poll();
                const int fd = stranger.Accept();
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
              Stranger stranger;
              stranger.Listen();
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
                      const Stranger stranger;
                      char handles[4][kHandleBytesMax] = {};
                      for (auto& handle : handles) stranger.WriteHandle(handle);
                      for (auto& handle : handles) {
                        void* comm = nullptr;
                        TCPX_REQUIRE(rank.net().Connect(rank.context(), 0, handle, &comm) == ncclSuccess, LogText());
                      }
                      for (auto& handle : handles) {
                        ncclResult_t result = ncclSuccess;
                        void* comm = nullptr;
                        while (result == ncclSuccess) result = rank.net().Connect(rank.context(), 0, handle, &comm);
                        TCPX_REQUIRE(result == ncclRemoteError, result);
                      }
                      absl::SleepFor(absl::Milliseconds(300));  // All four have ended.
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
                      void* listen = nullptr;
                      TCPX_REQUIRE(rank.net().Listen(rank.context(), 0, own, &listen) == ncclSuccess);
                      const absl::Time deadline = absl::Now() + kHungAfter / 2;
                      ncclResult_t result = ncclSuccess;
                      while (result == ncclSuccess) {
                        void* comm = nullptr;
                        result = rank.net().Accept(listen, &comm);
                        TCPX_REQUIRE(absl::Now() < deadline, "nobody told this rank; ", LogText());
                      }
                      TCPX_REQUIRE(result == ncclRemoteError && WarningCount() == 1, LogText());
                      TCPX_REQUIRE(LogText().find("Connection refused (111)") != std::string::npos, LogText());
                      peer.Tell('d');
                      rank.Close(ends);
                      rank.Finalize();
                    }));
}

// Whoever drops the SYNs, or accepts and never answers, is named long before the end, once.
TEST_P(ConnectFailureTest, WithoutProgress) {
  setenv("TCPX_HELLO_TIMEOUT", "600", 1);
  EXPECT_EQ("", RunAlone([] {
              Stranger stranger;
              stranger.Listen();
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
              absl::SleepFor(absl::Milliseconds(500));
              TCPX_REQUIRE(WarningCount() == 1, LogText());
              for (const char* part : {"through lo (127.0.0.1)", "try 1 of 4", "does not answer the hello", "firewall",
                                       "TCPX_PORT_RANGE", " s at the latest"}) {
                TCPX_REQUIRE(LogText().find(part) != std::string::npos, part, " is missing in ", LogText());
              }
              rank.Finalize();
            }));
}

// A handle from another host with an address that every host has.
TEST_P(ConnectFailureTest, ThePeersAddressIsOnesOwn) {
  setenv("NCCL_SOCKET_RETRY_CNT", "34", 1);
  setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "60000", 1);
  EXPECT_EQ("", RunAlone([] {
              const Stranger stranger;
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
                TCPX_REQUIRE(LogText().find(part) != std::string::npos, part, " is missing in ", LogText());
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
              void* listen = nullptr;
              TCPX_REQUIRE(rank.net().Listen(rank.context(), 0, handle, &listen) == ncclSuccess);
              WriteHostMark(77, handle);
              handle[33] ^= 1;  // in the ticket
              ncclResult_t result = ncclSuccess;
              while (result == ncclSuccess) {
                void* comm = nullptr;
                result = rank.net().Connect(rank.context(), 0, handle, &comm);
              }
              TCPX_REQUIRE(LogText().find("one of this host's own (lo)") != std::string::npos, LogText());
              rank.Finalize();
            }));
}

INSTANTIATE_TEST_SUITE_P(Modes, ConnectFailureTest, ::testing::Values(ModesWithBulkLanes()[0]), ModeName);

}  // namespace
}  // namespace tcpx
