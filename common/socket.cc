#include "common/socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/status.h"

namespace tcpx {
namespace {

// TCP_CA_NAME_MAX of linux/net/tcp.h, with the terminating zero.
constexpr size_t kCongestionNameMax = 16;
// linux/tcp.h, TCP_RTO_MAX_MS.
constexpr int kTcpRtoMaxMs = 44;

// `shown`: what an error says of the value.
template <typename Shown>
absl::Status Set(int fd, int level, int option, absl::string_view value, absl::string_view name, const Shown& shown) {
  if (setsockopt(fd, level, option, value.data(), static_cast<socklen_t>(value.size())) == 0) return absl::OkStatus();
  const int err = errno;
  return ErrnoStatus(err, absl::StrCat("setting ", name, " to ", shown));
}

// The bytes of the kernel's form of a value.
template <typename Value>
absl::string_view BytesOf(const Value& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

absl::Status SetInt(int fd, int level, int option, int value, absl::string_view name) {
  return Set(fd, level, option, BytesOf(value), name, value);
}

absl::Status SetBuffer(int fd, int option, int bytes, absl::string_view name, absl::string_view sysctl) {
  if (bytes < 0) return absl::OkStatus();
  absl::Status status = SetInt(fd, SOL_SOCKET, option, bytes, name);
  if (!status.ok()) return status;
  int doubled = 0;  // socket(7): the kernel doubles the value, for its bookkeeping, and returns it doubled
  socklen_t length = sizeof(doubled);
  if (getsockopt(fd, SOL_SOCKET, option, &doubled, &length) != 0) return ErrnoStatus(errno, name);
  if (doubled / 2 >= bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(name, " of ", bytes, " bytes was capped at ", doubled / 2, " by sysctl ", sysctl));
}

int WholeSeconds(int64_t timeout_ns) {
  return static_cast<int>(std::clamp<int64_t>((timeout_ns + kSecond - 1) / kSecond, 2, 32767));
}

absl::Status SetProbes(int fd, int idle, int interval, int count) {
  absl::Status status = SetInt(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle, "TCP_KEEPIDLE");
  if (status.ok()) status = SetInt(fd, IPPROTO_TCP, TCP_KEEPINTVL, interval, "TCP_KEEPINTVL");
  if (status.ok()) status = SetInt(fd, IPPROTO_TCP, TCP_KEEPCNT, count, "TCP_KEEPCNT");
  if (status.ok()) status = SetInt(fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
  return status;
}

int QueueLength(int fd, unsigned long request) {
  int bytes = 0;
  return ioctl(fd, request, &bytes) == 0 ? bytes : -1;
}

}  // namespace

absl::StatusOr<OwnedFd> StreamSocket(int family) {
  const int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  if (fd < 0) return ErrnoStatus(errno, "socket");
  return OwnedFd(fd);
}

absl::Status SetNoDelay(int fd) { return SetInt(fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY"); }

absl::Status SetWindowClamp(int fd, int bytes) {
  return SetInt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, bytes, "TCP_WINDOW_CLAMP");
}

absl::Status SetQuickAck(int fd, int value) { return SetInt(fd, IPPROTO_TCP, TCP_QUICKACK, value, "TCP_QUICKACK"); }

absl::Status SetRtoMax(int fd, int64_t ns) {
  return SetInt(fd, IPPROTO_TCP, kTcpRtoMaxMs, static_cast<int>(ns / kMillisecond), "TCP_RTO_MAX_MS");
}

absl::Status SetTrafficClass(int fd, int family, int tos) {
  absl::Status status = SetInt(fd, IPPROTO_IP, IP_TOS, tos, "IP_TOS");
  if (family == AF_INET || !status.ok()) return status;
  return SetInt(fd, IPPROTO_IPV6, IPV6_TCLASS, tos, "IPV6_TCLASS");
}

absl::Status SetPriority(int fd, int priority) { return SetInt(fd, SOL_SOCKET, SO_PRIORITY, priority, "SO_PRIORITY"); }

absl::Status SetBuffers(int fd, int sndbuf, int rcvbuf) {
  absl::Status send = SetBuffer(fd, SO_SNDBUF, sndbuf, "SO_SNDBUF", "net.core.wmem_max");
  absl::Status receive = SetBuffer(fd, SO_RCVBUF, rcvbuf, "SO_RCVBUF", "net.core.rmem_max");
  return send.ok() ? receive : send;
}

absl::Status SetReuseAddress(int fd) { return SetInt(fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR"); }

absl::Status SetCongestion(int fd, absl::string_view name) {
  absl::Status status = Set(fd, IPPROTO_TCP, TCP_CONGESTION, name, "TCP_CONGESTION", absl::StrCat("\"", name, "\""));
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(status.message(),
                                   "; it must be loaded (sysctl net.ipv4.tcp_available_congestion_control) and allowed "
                                   "(net.ipv4.tcp_allowed_congestion_control)"));
}

absl::StatusOr<std::string> GetCongestion(int fd) {
  char name[kCongestionNameMax + 1] = "";
  socklen_t length = kCongestionNameMax;
  if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return ErrnoStatus(errno, "TCP_CONGESTION");
  return std::string(name);
}

absl::Status SetPacing(int fd, uint64_t bytes_per_second) {
  // All ones is the kernel's "unlimited". The 64-bit form exists since Linux 4.20; earlier kernels read the first half,
  // which on these little-endian machines is the rate if it fits.
  const uint64_t rate = bytes_per_second == 0 ? ~uint64_t{0} : bytes_per_second;
  return Set(fd, SOL_SOCKET, SO_MAX_PACING_RATE, BytesOf(rate), "SO_MAX_PACING_RATE", bytes_per_second);
}

absl::Status BindToDevice(int fd, absl::string_view ifname) {
  return Set(fd, SOL_SOCKET, SO_BINDTODEVICE, ifname, "SO_BINDTODEVICE", absl::StrCat("\"", ifname, "\""));
}

std::string BoundDevice(int fd) {
  char name[IFNAMSIZ] = "";
  socklen_t length = sizeof(name);
  return getsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, name, &length) == 0 ? name : "";
}

absl::Status SetResetOnClose(int fd) {
  const linger reset = {/*l_onoff=*/1, /*l_linger=*/0};
  return Set(fd, SOL_SOCKET, SO_LINGER, BytesOf(reset), "SO_LINGER", "0 seconds");
}

int KeepAliveSeconds(int64_t timeout_ns) { return std::max(1, WholeSeconds(timeout_ns) / 3); }

absl::Status SetKeepAlive(int fd, int64_t timeout_ns) {
  // A third of the time idle, then up to ten probes: losses of 5 % each way then end a live connection once in 1e10.
  const int seconds = WholeSeconds(timeout_ns);
  const int idle = KeepAliveSeconds(timeout_ns);
  const int interval = std::max(1, seconds / 15);
  const int count = std::max(1, (seconds - idle) / interval);
  const absl::Status status = SetInt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, seconds * 1000, "TCP_USER_TIMEOUT");
  return status.ok() ? SetProbes(fd, idle, interval, count) : status;
}

absl::Status SetIdleProbes(int fd, int64_t every_ns) {
  constexpr int kCountMax = 127;  // MAX_TCP_KEEPCNT
  const int every = static_cast<int>(std::clamp<int64_t>(every_ns / kSecond, 1, 32767));
  return SetProbes(fd, every, every, kCountMax);
}

bool HasEnded(int fd) {
  pollfd asked{fd, POLLRDHUP, 0};
  return poll(&asked, 1, 0) > 0;
}

int TakeSocketError(int fd) {
  int err = 0;
  socklen_t length = sizeof(err);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &length) == 0 ? err : errno;
}

ssize_t ReceiveNow(int fd, iovec* iov, int count) {
  if (count == 1) return recv(fd, iov->iov_base, iov->iov_len, MSG_DONTWAIT);
  msghdr message = MessageOf(iov, count);
  return recvmsg(fd, &message, MSG_DONTWAIT);
}

int UnsentBytes(int fd) { return QueueLength(fd, SIOCOUTQNSD); }

int QueuedBytes(int fd) { return QueueLength(fd, SIOCOUTQ); }

int UnreadBytes(int fd) { return std::max(QueueLength(fd, SIOCINQ), 0); }

}  // namespace tcpx
