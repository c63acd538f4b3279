// socket.h: the socket calls that set up a lane.
//
// Purpose: each wrapper is one system call with a Status that names call and value. The calls that move bytes are not
//          here: they want errno itself, not a Status.
// Threads: any; only a socket's owner sets its options.
// Units:   bytes, bytes per second for pacing, nanoseconds.
// Errors:  as ErrnoStatus (common/status.h).
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/address.h"
#include "common/fd.h"

namespace tcpx {

// A TCP socket of AF_INET or AF_INET6: SOCK_NONBLOCK | SOCK_CLOEXEC.
absl::StatusOr<OwnedFd> StreamSocket(int family);

absl::Status SetNoDelay(int fd);
// Not sticky: the kernel goes back to delayed acknowledgements by itself (tcp(7)).
absl::Status SetQuickAck(int fd, int value);
// The longest pause between two retransmissions, or two probes of a shut window: 1 s to 120 s. Linux 6.15.
absl::Status SetRtoMax(int fd, int64_t ns);
// The largest receive window to advertise (TCP_WINDOW_CLAMP).
absl::Status SetWindowClamp(int fd, int bytes);
// `tos` is an octet as in IPv4 TOS; its two lowest bits (ECN, RFC 3168) belong to TCP. An IPv6 socket gets IPV6_TCLASS,
// and IP_TOS too, because it may carry a v4-mapped connection. Changes SO_PRIORITY.
absl::Status SetTrafficClass(int fd, int family, int tos);
// SO_PRIORITY: 7 and above need CAP_NET_ADMIN or CAP_NET_RAW (socket(7)), else EPERM.
absl::Status SetPriority(int fd, int priority);
// Before connect or listen, or the window scale is fixed already. A negative size is left to the kernel. The kernel
// caps silently at net.core.{w,r}mem_max: kResourceExhausted tells what was asked and what is in force (the rest is
// set).
absl::Status SetBuffers(int fd, int sndbuf, int rcvbuf);
// SO_REUSEADDR, for listening sockets on a fixed port range.
absl::Status SetReuseAddress(int fd);
absl::Status SetCongestion(int fd, absl::string_view name);
absl::StatusOr<std::string> GetCongestion(int fd);
// SO_MAX_PACING_RATE; 0 leaves the socket unpaced.
absl::Status SetPacing(int fd, uint64_t bytes_per_second);
// SO_BINDTODEVICE. Unprivileged since Linux 5.7 on a socket not yet bound to a device; EPERM before.
absl::Status BindToDevice(int fd, absl::string_view ifname);
// Empty: to none.
std::string BoundDevice(int fd);
// Aborts at close: SO_LINGER with a timeout of 0.
absl::Status SetResetOnClose(int fd);
// Ends a connection whose peer's kernel answers nothing for `timeout_ns`: by keepalive while it is idle (the kernel
// counts in whole seconds, so that is 2 s at the least), by TCP_USER_TIMEOUT while it is not. The latter also ends it
// when a peer that lives reads nothing for as long: not for sockets that carry messages.
absl::Status SetKeepAlive(int fd, int64_t timeout_ns);
// From one probe of such a connection to the next while it is idle.
int KeepAliveSeconds(int64_t timeout_ns);
// An idle connection says something once a minute, so that what keeps state about it on the path (NAT, firewalls, load
// balancers: from 240 s on) does not forget it. Never ends the connection within 127 times `every_ns` of silence.
inline constexpr int64_t kIdleProbeNs = int64_t{60} * 1000000000;
absl::Status SetIdleProbes(int fd, int64_t every_ns = kIdleProbeNs);
// The peer has closed its socket, or the connection is broken.
bool HasEnded(int fd);
// Takes the error that a non-blocking connect ended with (SO_ERROR); 0: none.
int TakeSocketError(int fd);

// For sendmsg(2) and recvmsg(2).
inline msghdr MessageOf(iovec* iov, int count) {
  msghdr message{};
  message.msg_iov = iov;
  message.msg_iovlen = static_cast<size_t>(count);
  return message;
}
// What has arrived, without waiting: as recvmsg(2). A single place is read with recv(2), which need not fetch a message
// header and a vector from us: 0.1 us a call, and a spinning caller makes many (docs/experiments.md).
ssize_t ReceiveNow(int fd, iovec* iov, int count);

// Bytes accepted from us and not yet sent (SIOCOUTQNSD), respectively not yet acknowledged (SIOCOUTQ); -1 when the
// kernel won't tell.
int UnsentBytes(int fd);
int QueuedBytes(int fd);
// Bytes that have come and were not read (SIOCINQ); 0 where the kernel won't tell.
int UnreadBytes(int fd);

}  // namespace tcpx
