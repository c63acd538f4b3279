// Nobody takes a lane over: what was recorded of a lane's resume is refused when it is said again, and where there is a
// shared secret, so is a stranger who knows ticket and connection but not the secret. The lane goes on undisturbed.
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/address.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/secret_file.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

// Passes on what comes, both ways, and keeps what the diallers say.
class Relay {
 public:
  explicit Relay(const SocketAddress& target) : target_(target) {
    accepting_ = std::thread([this] { Accept(); });
  }
  ~Relay() {
    shutdown(listening_.fd(), SHUT_RDWR);
    accepting_.join();
    for (int fd : fds_) shutdown(fd, SHUT_RDWR);
    for (std::thread& thread : passing_) thread.join();
    for (int fd : fds_) close(fd);
  }

  SocketAddress address() const { return listening_.address(); }

  // The latest that was said after a hello of `kind`, from the hello on, and its connection here; empty: none was.
  std::string Said(HelloKind kind, size_t* connection) {
    std::lock_guard<std::mutex> lock(mutex_);
    for (size_t i = said_.size(); i-- > 0;) {
      if (!Begins(said_[i], kind)) continue;
      *connection = i;
      return said_[i];
    }
    return "";
  }
  // How many hellos of `kind` came.
  int HeardOf(HelloKind kind) {
    std::lock_guard<std::mutex> lock(mutex_);
    return static_cast<int>(
        std::count_if(said_.begin(), said_.end(), [&](const auto& all) { return Begins(all, kind); }));
  }
  void End(size_t connection) {
    std::lock_guard<std::mutex> lock(mutex_);
    shutdown(fds_[2 * connection], SHUT_RDWR);
    shutdown(fds_[2 * connection + 1], SHUT_RDWR);
  }

 private:
  static bool Begins(const std::string& said, HelloKind kind) {
    Hello hello;
    return said.size() >= kHelloBytes && DecodeHello(said.data(), &hello) == nullptr && hello.kind == kind;
  }

  void Accept() {
    for (;;) {
      const int near = accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
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
  const FakeAcceptor listening_;
  std::thread accepting_;
  std::mutex mutex_;
  std::vector<int> fds_;
  std::vector<std::string> said_;
  std::vector<std::thread> passing_;
};

// A connection of this process with itself, through a relay.
class Relayed {
 public:
  Relayed() {
    listen_ = rank_.Listen(handle_);
    Handle handle;
    TCPX_REQUIRE(DecodeHandle(handle_, &handle) == nullptr);
    relay_ = std::make_unique<Relay>(handle.address);
    handle.address = relay_->address();
    char own[kHandleBytesMax] = {};
    EncodeHandle(handle, own);
    TCPX_REQUIRE(rank_.Poll(own, listen_, &ends_) == ncclSuccess, LogText());
  }

  // What was heard before the relay's own address took its place.
  const char* handle() const { return handle_; }
  Relay& relay() { return *relay_; }

  void Move(const std::string& text) { Must(tcpx::Move(&rank_.net(), ends_, text)); }

  // How often a lane went on with another socket, at either end.
  void AwaitResumes(int count) {
    const absl::Time deadline = absl::Now() + kHungAfter / 2;
    while (CountInLog(" goes on, ") < count) TCPX_REQUIRE(absl::Now() < deadline, LogText());
  }

  void Close() {
    rank_.Close(ends_);
    rank_.CloseListen(listen_);
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
  Mode{.environment = {{"TCPX_HEAL", "1"}, {"NCCL_SOCKET_RETRY_SLEEP_MSEC", "1"}}}.Apply();
  if (secret) setenv("TCPX_SECRET_FILE", SecretFile().c_str(), 1);
  Relayed pair;
  pair.Move("before");
  size_t connection = 0;
  TCPX_REQUIRE(!pair.relay().Said(HelloKind::kLane, &connection).empty());
  pair.relay().End(connection);
  pair.AwaitResumes(2);
  pair.Move("after");
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
  // Each of both ends says so once for a socket that came through the relay, on a busy machine also for a second one.
  TCPX_REQUIRE(CountInLog(" goes on, ") <= 2 * pair.relay().HeardOf(HelloKind::kResume), LogText());
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
