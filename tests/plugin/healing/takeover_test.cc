// Nobody takes a lane over: what was recorded of a lane's resume is refused when it is said again, and where there is a
// shared secret, so is whoever knows ticket and connection but not the secret. The lane goes on undisturbed.
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/address.h"
#include "tests/plugin/lifetime/processes.h"
#include "tests/plugin/lifetime/rank.h"
#include "tests/plugin/strangers/visitor.h"

namespace tcpx {
namespace {

// Passes on what comes, both ways, and keeps what the diallers say.
class Relay {
 public:
  explicit Relay(const SocketAddress& target) : target_(target) {
    const auto any = SocketAddress::Parse("127.0.0.1");
    TCPX_REQUIRE(bind(listening_, any->sockaddr(), any->length()) == 0 && listen(listening_, 16) == 0);
    accepting_ = std::thread([this] { Accept(); });
  }
  ~Relay() {
    shutdown(listening_, SHUT_RDWR);
    accepting_.join();
    for (int fd : fds_) shutdown(fd, SHUT_RDWR);
    for (std::thread& thread : passing_) thread.join();
    for (int fd : fds_) close(fd);
    close(listening_);
  }

  SocketAddress address() const { return *LocalAddress(listening_); }

  // The latest that was said behind a hello of `kind`, from the hello on, and its connection here; empty: none was.
  std::string Said(HelloKind kind, size_t* connection) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = said_.size(); i-- > 0;) {
      Hello hello;
      const bool whole = said_[i].size() >= kHelloBytes && DecodeHello(said_[i].data(), &hello) == nullptr;
      if (!whole || hello.kind != kind) continue;
      *connection = i;
      return said_[i];
    }
    return "";
  }
  void End(size_t connection) {
    std::lock_guard<std::mutex> lock(mutex_);
    shutdown(fds_[2 * connection], SHUT_RDWR);
    shutdown(fds_[2 * connection + 1], SHUT_RDWR);
  }

 private:
  void Accept() {
    for (;;) {
      const int near = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
      if (near < 0) return;
      const int far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      TCPX_REQUIRE(connect(far, target_.sockaddr(), target_.length()) == 0);
      std::lock_guard<std::mutex> lock(mutex_);
      fds_.push_back(near);
      fds_.push_back(far);
      said_.emplace_back();
      passing_.emplace_back([this, near, far, i = said_.size() - 1] { Pass(near, far, i); });
    }
  }

  void Pass(int near, int far, size_t connection) {
    pollfd ends[] = {{near, POLLIN, 0}, {far, POLLIN, 0}};
    char bytes[4096];
    while (poll(ends, 2, -1) > 0) {
      for (int i = 0; i < 2; ++i) {
        if (ends[i].revents == 0) continue;
        const ssize_t got = recv(ends[i].fd, bytes, sizeof(bytes), 0);
        if (got <= 0 || send(ends[1 - i].fd, bytes, static_cast<size_t>(got), MSG_NOSIGNAL) != got) {
          shutdown(near, SHUT_RDWR);
          shutdown(far, SHUT_RDWR);
          return;
        }
        std::lock_guard<std::mutex> lock(mutex_);
        if (i == 0) said_[connection].append(bytes, static_cast<size_t>(got));
      }
    }
  }

  const SocketAddress target_;
  const int listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::thread accepting_;
  std::mutex mutex_;
  std::vector<int> fds_;
  std::vector<std::string> said_;
  std::vector<std::thread> passing_;
};

// A connection of this process with itself, by way of a relay.
class Relayed {
 public:
  Relayed() {
    TCPX_REQUIRE(rank_.net().Listen(rank_.context(), 0, handle_, &listen_) == ncclSuccess, LogText());
    Handle handle;
    TCPX_REQUIRE(DecodeHandle(handle_, &handle) == nullptr);
    relay_ = std::make_unique<Relay>(handle.address);
    handle.address = relay_->address();
    char own[kHandleBytesMax] = {};
    EncodeHandle(handle, own);
    const absl::Time deadline = absl::Now() + kHungAfter / 2;
    while (ends_.send == nullptr || ends_.recv == nullptr) {
      if (ends_.send == nullptr) {
        TCPX_REQUIRE(rank_.net().Connect(rank_.context(), 0, own, &ends_.send) == ncclSuccess, LogText());
      }
      if (ends_.recv == nullptr) TCPX_REQUIRE(rank_.net().Accept(listen_, &ends_.recv) == ncclSuccess, LogText());
      TCPX_REQUIRE(absl::Now() < deadline, LogText());
    }
  }

  // What was heard before the relay's own address took its place.
  const char* handle() const { return handle_; }
  Relay& relay() { return *relay_; }

  void Move(std::string text) {
    std::string got(text.size(), '?');
    void *data = &got[0], *send = nullptr, *receive = nullptr;
    size_t bytes = text.size();
    int tag = 0, sent = 0, received = 0;
    const absl::Time deadline = absl::Now() + kHungAfter / 2;
    while (sent == 0 || received == 0) {
      NetClient& net = rank_.net();
      if (receive == nullptr) {
        TCPX_REQUIRE(net.Irecv(ends_.recv, 1, &data, &bytes, &tag, nullptr, nullptr, &receive) == ncclSuccess);
      } else if (received == 0) {
        TCPX_REQUIRE(net.Test(receive, &received, nullptr) == ncclSuccess, LogText());
      }
      if (send == nullptr) {
        TCPX_REQUIRE(net.Isend(ends_.send, &text[0], bytes, 0, nullptr, nullptr, &send) == ncclSuccess, LogText());
      } else if (sent == 0) {
        TCPX_REQUIRE(net.Test(send, &sent, nullptr) == ncclSuccess, LogText());
      }
      TCPX_REQUIRE(absl::Now() < deadline, LogText());
    }
    TCPX_REQUIRE(got == text, got);
  }

  // How often a lane went on with another socket, at either end.
  void AwaitResumes(int count) {
    const absl::Time deadline = absl::Now() + kHungAfter / 2;
    while (Count(LogText(), " goes on, ") < count) TCPX_REQUIRE(absl::Now() < deadline, LogText());
  }

  void Close() {
    rank_.Close(ends_);
    TCPX_REQUIRE(rank_.net().CloseListen(listen_) == ncclSuccess);
    rank_.Finalize();
  }

 private:
  Rank rank_;
  char handle_[kHandleBytesMax] = {};
  void* listen_ = nullptr;
  std::unique_ptr<Relay> relay_;
  Ends ends_;
};

// Says `hello`, and `proof` where that is asked for.
HelloStatus Answered(const char* handle, const std::string& hello, const std::string& proof) {
  Visitor visitor(handle);
  const HelloStatus status = StatusFor(&visitor, hello);
  if (status != HelloStatus::kProve) return status;
  TCPX_REQUIRE(visitor.Hear(kNonceBytes).size() == kNonceBytes);
  return StatusFor(&visitor, proof);
}

void TakeNothingOver(bool secret) {
  for (const auto& [name, value] :
       {std::pair("TCPX_HEAL", "1"), std::pair("TCPX_LANES", "1"), std::pair("TCPX_THREADS", "0"),
        std::pair("NCCL_SOCKET_IFNAME", "lo"), std::pair("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1")}) {
    setenv(name, value, 1);
  }
  if (secret) {
    const char* const folder = getenv("TEST_TMPDIR");
    const std::string path = absl::StrCat(folder != nullptr ? folder : "/tmp", "/secret.", getpid());
    std::ofstream(path) << "correct horse battery staple";
    TCPX_REQUIRE(chmod(path.c_str(), 0600) == 0);
    setenv("TCPX_SECRET_FILE", path.c_str(), 1);
  }
  Relayed pair;
  pair.Move("before");
  size_t connection = 0;
  TCPX_REQUIRE(!pair.relay().Said(HelloKind::kLane, &connection).empty());
  pair.relay().End(connection);
  pair.AwaitResumes(2);
  pair.Move("behind");
  const std::string recorded = pair.relay().Said(HelloKind::kResume, &connection);
  TCPX_REQUIRE(recorded.size() >= kHelloBytes + (secret ? kProofBytes : 0), recorded.size());
  const std::string proof = recorded.substr(kHelloBytes, secret ? kProofBytes : 0);
  const auto again = Answered(pair.handle(), recorded.substr(0, kHelloBytes), proof);
  TCPX_REQUIRE(again == (secret ? HelloStatus::kSecretWrong : HelloStatus::kDuplicateLane), static_cast<int>(again));

  Hello hello;
  TCPX_REQUIRE(DecodeHello(recorded.data(), &hello) == nullptr);
  ++hello.attempt;
  std::string newer(kHelloBytes, '\0');
  EncodeHello(hello, &newer[0]);
  if (secret) {
    TCPX_REQUIRE(Answered(pair.handle(), newer, proof) == HelloStatus::kSecretWrong);
    TCPX_REQUIRE(Answered(pair.handle(), newer, std::string(kProofBytes, 'x')) == HelloStatus::kSecretWrong);
    hello.features &= ~kFeatureSecret;
    EncodeHello(hello, &newer[0]);
    TCPX_REQUIRE(Answered(pair.handle(), newer, "") == HelloStatus::kSecretMissing);
  } else {
    hello.ticket[0] ^= 1;
    EncodeHello(hello, &newer[0]);
    TCPX_REQUIRE(Answered(pair.handle(), newer, "") == HelloStatus::kGone);
  }
  pair.Move(std::string(100000, 'u'));
  TCPX_REQUIRE(Count(LogText(), " goes on, ") == 2, LogText());
  // The lane still heals: no attempt was used up.
  pair.relay().End(connection);
  pair.AwaitResumes(4);
  pair.Move("in the end");
  pair.Close();
}

TEST(TakeoverTest, WhatWasRecordedIsRefused) {
  EXPECT_EQ("", RunAlone([] { TakeNothingOver(false); }));
}

TEST(TakeoverTest, NobodyWithoutTheSecretTakesALane) {
  EXPECT_EQ("", RunAlone([] { TakeNothingOver(true); }));
}

}  // namespace
}  // namespace tcpx
