// The traffic class of each attempt to dial a lane, seen from the other end of the wire: the SYN, the hello. And hellos
// that ask for what is no class.
#include <errno.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "common/address.h"
#include "common/fd.h"
#include "common/socket.h"
#include "net_socket/message/wire.h"
#include "tests/plugin/contexts/contexts_fixture.h"

namespace tcpx {
namespace {

constexpr int kWaitMs = 60000;

bool Wait(int fd, short events) {
  pollfd ready = {fd, events, 0};
  return poll(&ready, 1, kWaitMs) == 1;
}

bool ReadExactly(int fd, char* bytes, size_t wanted) {
  for (size_t have = 0; have < wanted;) {
    if (!Wait(fd, POLLIN)) return false;
    const ssize_t got = recv(fd, bytes + have, wanted - have, 0);
    if (got <= 0) return false;
    have += static_cast<size_t>(got);
  }
  return true;
}

std::string LocalHost(int family) { return family == AF_INET6 ? "[fd00::1]:0" : "127.0.0.1:0"; }

// A listener in the acceptor's place: it keeps what the kernel has seen of each SYN.
class Stub {
 public:
  explicit Stub(int family) {
    fd_ = *StreamSocket(family);
    const int on = 1;
    EXPECT_EQ(0, setsockopt(fd_.get(), IPPROTO_TCP, TCP_SAVE_SYN, &on, sizeof(on)));
    const SocketAddress address = *SocketAddress::Parse(LocalHost(family));
    EXPECT_EQ(0, bind(fd_.get(), address.sockaddr(), address.length()));
    EXPECT_EQ(0, listen(fd_.get(), 16));
  }

  // What listen would have written.
  std::vector<char> MakeHandle() const {
    Handle handle;
    handle.address = *LocalAddress(fd_.get());
    std::vector<char> bytes(NCCL_NET_HANDLE_MAXSIZE);
    EncodeHandle(handle, bytes.data());
    return bytes;
  }

  // The next lane that dials, whose hello has come.
  struct Dialled {
    OwnedFd fd;
    Hello hello;
  };
  Dialled Next() {
    Dialled dialled;
    if (!Wait(fd_.get(), POLLIN)) return dialled;
    dialled.fd = OwnedFd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    char bytes[kHelloBytes];
    if (!ReadExactly(dialled.fd.get(), bytes, sizeof(bytes)) || DecodeHello(bytes, &dialled.hello) != nullptr) {
      dialled.fd.reset();
    }
    return dialled;
  }

  static void Accept(const Dialled& dialled) {
    char bytes[kAnswerBytesMax];
    const size_t length = EncodeAnswer(Answer(), bytes);
    EXPECT_EQ(static_cast<ssize_t>(length), send(dialled.fd.get(), bytes, length, MSG_NOSIGNAL));
  }

 private:
  OwnedFd fd_;
};

class RedialClassTest : public ContextsTest {
 protected:
  void ExpectEveryAttemptMarked(int family, int lanes);
};

// Every lane is turned away twice before it is let in; in between the dialler opens a new socket.
void RedialClassTest::ExpectEveryAttemptMarked(int family, int lanes) {
  constexpr int kTurnedAway = 2;
  Mode settings;
  settings.family = family;
  settings.lanes = lanes;
  settings.environment = {{"NCCL_SOCKET_RETRY_SLEEP_MSEC", "1"}};
  ASSERT_NO_FATAL_FAILURE(Open(settings));
  void* context = NewContext(1, 184);
  Stub stub(family);
  std::vector<char> handle = stub.MakeHandle();
  void* send_comm = nullptr;
  ASSERT_EQ(ncclSuccess, net().Connect(context, 0, handle.data(), &send_comm));
  std::vector<int> attempts(static_cast<size_t>(lanes));
  std::vector<Stub::Dialled> accepted;
  while (static_cast<int>(accepted.size()) < lanes) {
    Stub::Dialled dialled = stub.Next();
    ASSERT_TRUE(dialled.fd.valid()) << LogText();
    ASSERT_LT(dialled.hello.lane, lanes);
    const int attempt = ++attempts[dialled.hello.lane];
    EXPECT_EQ(184, TrafficClassOfSyn(dialled.fd.get())) << "lane " << dialled.hello.lane << " attempt " << attempt;
    EXPECT_EQ(184, dialled.hello.traffic_class) << "lane " << dialled.hello.lane << " attempt " << attempt;
    if (attempt <= kTurnedAway) continue;  // Closed without an answer.
    Stub::Accept(dialled);
    accepted.push_back(std::move(dialled));
  }
  Deadline deadline;
  while (send_comm == nullptr && deadline.Yield()) {
    ASSERT_EQ(ncclSuccess, net().Connect(context, 0, handle.data(), &send_comm)) << LogText();
  }
  ASSERT_NE(nullptr, send_comm);
  for (const LaneEnd& end : ConnectedSockets()) {
    const bool ours = std::any_of(accepted.begin(), accepted.end(), [&](auto& one) { return one.fd.get() == end.fd; });
    EXPECT_EQ(ours ? 0 : 184, end.traffic_class) << end.local << " to " << end.peer;
  }
  EXPECT_EQ(std::vector<int>(static_cast<size_t>(lanes), kTurnedAway + 1), attempts);
  EXPECT_EQ(ncclSuccess, net().CloseSend(send_comm));
  accepted.clear();  // Closed sockets linger until the peer has closed too.
  EXPECT_EQ(ncclSuccess, net().Finalize(context));
}

TEST_F(RedialClassTest, EveryAttemptBearsTheClassFromItsSynOn) { ExpectEveryAttemptMarked(AF_INET, 3); }

TEST_F(RedialClassTest, EveryAttemptBearsTheClassFromItsSynOnIpv6) {
  if (!InOwnNetwork()) GTEST_SKIP() << "no network namespace, so no IPv6 address that NCCL's rules accept";
  ExpectEveryAttemptMarked(AF_INET6, 3);
}

class HelloClassTest : public ContextsTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Open({}));
    auto listen = plugin_->Listen(handle_);
    ASSERT_TRUE(listen.ok()) << listen.status();
  }

  // What the acceptor answers to a hello, good but for this class. *fd stays connected.
  HelloStatus AnswerTo(int traffic_class, OwnedFd* fd) {
    Handle handle;
    EXPECT_EQ(nullptr, DecodeHandle(handle_, &handle));
    *fd = *StreamSocket(handle.address.family());
    EXPECT_TRUE(connect(fd->get(), handle.address.sockaddr(), handle.address.length()) == 0 || errno == EINPROGRESS);
    EXPECT_TRUE(Wait(fd->get(), POLLOUT));
    Hello hello;
    hello.ticket = handle.ticket;
    hello.connection_id[0] = ++connections_;
    hello.lanes = 2;  // So that it waits for the other.
    hello.traffic_class = traffic_class;
    char bytes[kAnswerBytesMax];
    EncodeHello(hello, bytes);
    EXPECT_EQ(static_cast<ssize_t>(kHelloBytes), send(fd->get(), bytes, kHelloBytes, MSG_NOSIGNAL));
    Answer answer;
    int addresses = 0;
    EXPECT_TRUE(ReadExactly(fd->get(), bytes, kAnswerFixedBytes)) << traffic_class;
    EXPECT_EQ(nullptr, DecodeAnswer(bytes, &answer, &addresses));
    return answer.status;
  }

  char handle_[NCCL_NET_HANDLE_MAXSIZE] = {};
  uint8_t connections_ = 0;
};

TEST_F(HelloClassTest, TheAcceptorTakesItBeforeItAnswers) {
  for (int traffic_class : {-1, 0, 32, 184, 252}) {
    OwnedFd fd;
    EXPECT_EQ(HelloStatus::kAccepted, AnswerTo(traffic_class, &fd)) << traffic_class;
    const std::string local = LocalAddress(fd.get())->ToString();
    int seen = 0;
    for (const LaneEnd& end : ConnectedSockets()) {
      if (end.peer != local) continue;
      ++seen;
      EXPECT_EQ(traffic_class < 0 ? 0 : traffic_class, end.traffic_class);
      EXPECT_EQ(traffic_class < 0 ? 0 : traffic_class / 32, end.priority);
    }
    EXPECT_EQ(1, seen);
  }
}

TEST_F(HelloClassTest, WhatIsNoClassIsRefused) {
  for (int traffic_class : {-2, 1, 2, 3, 185, 255, 256, 0x10000, INT_MAX, INT_MIN}) {
    OwnedFd fd;
    EXPECT_EQ(HelloStatus::kBadTrafficClass, AnswerTo(traffic_class, &fd)) << traffic_class;
    char byte;
    EXPECT_FALSE(ReadExactly(fd.get(), &byte, 1)) << "the socket stays open";
  }
  OwnedFd fd;
  EXPECT_EQ(HelloStatus::kAccepted, AnswerTo(184, &fd)) << "others are served on";
}

}  // namespace
}  // namespace tcpx
