#include "common/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "absl/strings/match.h"
#include "common/address.h"
#include "common/clock.h"
#include "common/fd.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

int IntOption(int fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof(value);
  EXPECT_EQ(getsockopt(fd, level, option, &value, &length), 0);
  return value;
}

OwnedFd NewSocket(int family = AF_INET) {
  absl::StatusOr<OwnedFd> fd = StreamSocket(family);
  EXPECT_TRUE(fd.ok()) << fd.status();
  return fd.ok() ? *std::move(fd) : OwnedFd();
}

// Two ends of a loopback connection.
struct Pair {
  OwnedFd client;
  OwnedFd server;
};

Pair Connected() {
  OwnedFd listener = NewSocket();
  const SocketAddress any = *SocketAddress::Parse("127.0.0.1:0");
  EXPECT_EQ(bind(listener.get(), any.sockaddr(), any.length()), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  const SocketAddress address = *LocalAddress(listener.get());
  Pair pair;
  pair.client = NewSocket();
  EXPECT_TRUE(connect(pair.client.get(), address.sockaddr(), address.length()) == 0 || errno == EINPROGRESS);
  pollfd ready = {listener.get(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 10000), 1);
  pair.server = OwnedFd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  EXPECT_TRUE(pair.server.valid());
  ready = {pair.client.get(), POLLOUT, 0};
  EXPECT_EQ(poll(&ready, 1, 10000), 1);
  return pair;
}

TEST(SocketTest, IsNonBlockingAndClosedByExec) {
  OwnedFd fd = NewSocket();
  EXPECT_NE(fcntl(fd.get(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_NE(fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(IntOption(fd.get(), SOL_SOCKET, SO_TYPE), SOCK_STREAM);
}

TEST(SocketTest, AtTheDescriptorLimitTheErrorSaysWhatToRaise) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) _exit(1);
    const absl::StatusOr<OwnedFd> fd = StreamSocket(AF_INET);
    if (fd.status().code() != absl::StatusCode::kResourceExhausted) _exit(2);
    _exit(absl::StrContains(fd.status().message(), "ulimit -Hn") ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(SocketTest, OptionsAreSet) {
  OwnedFd fd = NewSocket();
  EXPECT_TRUE(SetNoDelay(fd.get()).ok());
  EXPECT_NE(IntOption(fd.get(), IPPROTO_TCP, TCP_NODELAY), 0);
  EXPECT_TRUE(SetReuseAddress(fd.get()).ok());
  EXPECT_NE(IntOption(fd.get(), SOL_SOCKET, SO_REUSEADDR), 0);
  EXPECT_TRUE(SetPacing(fd.get(), 1000000).ok());
  EXPECT_EQ(IntOption(fd.get(), SOL_SOCKET, SO_MAX_PACING_RATE), 1000000);
  EXPECT_TRUE(SetPacing(fd.get(), 0).ok());
  EXPECT_EQ(IntOption(fd.get(), SOL_SOCKET, SO_MAX_PACING_RATE), -1);
}

// Nobody is dead before the time that was given.
TEST(SocketTest, KeepAliveTakesWholeSecondsAndTwoAtTheLeast) {
  const struct {
    int64_t timeout_ns;
    int seconds;
  } cases[] = {{kSecond, 2}, {kSecond * 3 / 2, 2}, {3 * kSecond, 3}, {kSecond * 7 / 2, 4}, {3600 * kSecond, 3600}};
  for (const auto& one : cases) {
    const OwnedFd fd = NewSocket();
    EXPECT_TRUE(SetKeepAlive(fd.get(), one.timeout_ns).ok());
    EXPECT_EQ(IntOption(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT), one.seconds * 1000) << one.timeout_ns;
    EXPECT_EQ(IntOption(fd.get(), SOL_SOCKET, SO_KEEPALIVE), 1);
  }
}

TEST(SocketTest, QuickAckIsSetOnAConnection) {
  Pair pair = Connected();
  EXPECT_TRUE(SetQuickAck(pair.client.get(), 0).ok());
  EXPECT_EQ(IntOption(pair.client.get(), IPPROTO_TCP, TCP_QUICKACK), 0);
  EXPECT_TRUE(SetQuickAck(pair.client.get(), 1).ok());
  EXPECT_EQ(IntOption(pair.client.get(), IPPROTO_TCP, TCP_QUICKACK), 1);
}

TEST(SocketTest, TrafficClassMarksBothHeadersOfAnIpv6Socket) {
  OwnedFd v4 = NewSocket(AF_INET);
  EXPECT_TRUE(SetTrafficClass(v4.get(), AF_INET, 0x68).ok());
  EXPECT_EQ(IntOption(v4.get(), IPPROTO_IP, IP_TOS), 0x68);
  absl::StatusOr<OwnedFd> v6 = StreamSocket(AF_INET6);
  if (!v6.ok()) GTEST_SKIP() << "no IPv6 on this machine: " << v6.status();
  EXPECT_TRUE(SetTrafficClass(v6->get(), AF_INET6, 0x68).ok());
  EXPECT_EQ(IntOption(v6->get(), IPPROTO_IPV6, IPV6_TCLASS), 0x68);
  EXPECT_EQ(IntOption(v6->get(), IPPROTO_IP, IP_TOS), 0x68);
}

TEST(SocketTest, PriorityIsSet) {
  OwnedFd fd = NewSocket();
  EXPECT_TRUE(SetPriority(fd.get(), 5).ok());
  EXPECT_EQ(IntOption(fd.get(), SOL_SOCKET, SO_PRIORITY), 5);
  const absl::Status closed = SetPriority(-1, 5);
  EXPECT_TRUE(absl::StrContains(closed.message(), "SO_PRIORITY to 5")) << closed;
}

TEST(SocketTest, BuffersAreSetLeftAloneOrReportedAsCapped) {
  OwnedFd fd = NewSocket();
  const int send_before = IntOption(fd.get(), SOL_SOCKET, SO_SNDBUF);
  const int receive_before = IntOption(fd.get(), SOL_SOCKET, SO_RCVBUF);
  EXPECT_TRUE(SetBuffers(fd.get(), -1, -1).ok());
  EXPECT_EQ(IntOption(fd.get(), SOL_SOCKET, SO_SNDBUF), send_before);
  EXPECT_TRUE(SetBuffers(fd.get(), 65536, -1).ok());
  EXPECT_EQ(IntOption(fd.get(), SOL_SOCKET, SO_SNDBUF), 2 * 65536);
  EXPECT_EQ(IntOption(fd.get(), SOL_SOCKET, SO_RCVBUF), receive_before);
  const absl::Status capped = SetBuffers(fd.get(), 65536, (1 << 30) - 1);
  EXPECT_EQ(capped.code(), absl::StatusCode::kResourceExhausted) << capped;
  EXPECT_TRUE(absl::StrContains(capped.message(), "net.core.rmem_max")) << capped;
  EXPECT_GT(IntOption(fd.get(), SOL_SOCKET, SO_RCVBUF), 0);
}

TEST(SocketTest, CongestionControlIsReadAndSet) {
  OwnedFd fd = NewSocket();
  const absl::StatusOr<std::string> name = GetCongestion(fd.get());
  ASSERT_TRUE(name.ok()) << name.status();
  EXPECT_FALSE(name->empty());
  EXPECT_TRUE(SetCongestion(fd.get(), "reno").ok());  // built into every kernel, and always allowed
  EXPECT_EQ(*GetCongestion(fd.get()), "reno");
  const absl::Status unknown = SetCongestion(fd.get(), "no_such_algo");
  EXPECT_FALSE(unknown.ok());
  EXPECT_TRUE(absl::StrContains(unknown.message(), "no_such_algo")) << unknown;
  EXPECT_TRUE(absl::StrContains(unknown.message(), "tcp_allowed_congestion_control")) << unknown;
  EXPECT_EQ(*GetCongestion(fd.get()), "reno");
}

TEST(SocketTest, BindToDeviceNamesTheDeviceInItsError) {
  OwnedFd fd = NewSocket();
  const absl::Status missing = BindToDevice(fd.get(), "no_such_if");
  EXPECT_FALSE(missing.ok());
  EXPECT_TRUE(absl::StrContains(missing.message(), "no_such_if")) << missing;
  const absl::Status bound = BindToDevice(fd.get(), "lo");
  if (!bound.ok()) GTEST_SKIP() << "needs Linux 5.7 or CAP_NET_RAW: " << bound;
  char name[16] = "";
  socklen_t length = sizeof(name);
  ASSERT_EQ(getsockopt(fd.get(), SOL_SOCKET, SO_BINDTODEVICE, name, &length), 0);
  EXPECT_STREQ(name, "lo");
  EXPECT_EQ(BoundDevice(fd.get()), "lo");
  EXPECT_EQ(BoundDevice(NewSocket().get()), "");
}

TEST(SocketTest, QueueLengthsCountWhatWaits) {
  Pair pair = Connected();
  EXPECT_EQ(UnsentBytes(pair.client.get()), 0);
  EXPECT_EQ(QueuedBytes(pair.client.get()), 0);
  const std::string block(1 << 20, 'x');
  ssize_t total = 0;
  for (ssize_t sent = 0; sent >= 0; total += sent > 0 ? sent : 0) {
    sent = send(pair.client.get(), block.data(), block.size(), MSG_NOSIGNAL);
  }
  ASSERT_EQ(errno, EAGAIN);  // the peer does not read: everything is full
  EXPECT_GT(UnsentBytes(pair.client.get()), 0);
  EXPECT_GE(QueuedBytes(pair.client.get()), UnsentBytes(pair.client.get()));
  EXPECT_LE(QueuedBytes(pair.client.get()), total);
  EXPECT_EQ(UnsentBytes(-1), -1);
  EXPECT_EQ(QueuedBytes(-1), -1);
}

TEST(SocketTest, ResetOnCloseResetsThePeer) {
  Pair pair = Connected();
  ASSERT_TRUE(SetResetOnClose(pair.client.get()).ok());
  pair.client.reset();
  pollfd ready = {pair.server.get(), POLLIN, 0};
  ASSERT_EQ(poll(&ready, 1, 10000), 1);
  EXPECT_EQ(ECONNRESET, TakeSocketError(pair.server.get()));
  EXPECT_EQ(0, TakeSocketError(pair.server.get())) << "the error was taken";
}

TEST(SocketTest, ErrorsNameTheOption) {
  const absl::Status status = SetNoDelay(-1);
  EXPECT_TRUE(absl::StrContains(status.message(), "TCP_NODELAY to 1: Bad file descriptor")) << status;
}

}  // namespace
}  // namespace tcpx
