// Between the plugin and libc: the linker sends every call of these names here first (--wrap, ld(1)).
#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstdint>

#include "tests/plugin/faults/faults.h"

extern "C" {
ssize_t __real_send(int fd, const void* data, size_t bytes, int flags);
ssize_t __real_sendmsg(int fd, const msghdr* message, int flags);
ssize_t __real_recv(int fd, void* data, size_t bytes, int flags);
ssize_t __real_recvmsg(int fd, msghdr* message, int flags);
int __real_epoll_wait(int epoll, epoll_event* events, int max, int timeout);
}

namespace tcpx {
namespace {

constexpr size_t kPlacesMax = 1024;  // UIO_MAXIOV

// What the caller gets at once. False: the call is made, of fault->bytes at the most where that is not 0.
bool Answered(int fd, FlowDirection direction, Fault* fault, ssize_t* result) {
  *fault = Fault();
  if (Faultless::InForce()) return false;
  *fault = Faults::Get().Next(fd, direction, Polling());
  switch (fault->kind) {
    case Fault::Kind::kNone:
    case Fault::Kind::kShort:
      return false;
    case Fault::Kind::kReset:
      ResetSocket(fd);
      return false;
    case Fault::Kind::kZero:
      *result = 0;
      return true;
    case Fault::Kind::kAgain:
    case Fault::Kind::kErrno:
      errno = fault->err;
      *result = -1;
      return true;
  }
  return false;
}

// The first bytes of a message, as many as the fault leaves.
msghdr Cut(const msghdr& whole, const Fault& fault, iovec* places) {
  msghdr cut = whole;
  if (fault.bytes == 0) return cut;
  size_t rest = fault.bytes;
  cut.msg_iov = places;
  cut.msg_iovlen = 0;
  for (size_t i = 0; i < std::min<size_t>(whole.msg_iovlen, kPlacesMax) && rest > 0; ++i) {
    const size_t length = std::min(rest, whole.msg_iov[i].iov_len);
    places[cut.msg_iovlen++] = {whole.msg_iov[i].iov_base, length};
    rest -= length;
  }
  return cut;
}

size_t Cut(size_t bytes, const Fault& fault) { return fault.bytes == 0 ? bytes : std::min(bytes, fault.bytes); }

}  // namespace
}  // namespace tcpx

extern "C" {

ssize_t __wrap_send(int fd, const void* data, size_t bytes, int flags) {
  tcpx::Fault fault;
  ssize_t result = 0;
  if (tcpx::Answered(fd, tcpx::FlowDirection::kSend, &fault, &result)) return result;
  return __real_send(fd, data, tcpx::Cut(bytes, fault), flags);
}

ssize_t __wrap_sendmsg(int fd, const msghdr* message, int flags) {
  tcpx::Fault fault;
  ssize_t result = 0;
  if (tcpx::Answered(fd, tcpx::FlowDirection::kSend, &fault, &result)) return result;
  iovec places[tcpx::kPlacesMax];
  const msghdr cut = tcpx::Cut(*message, fault, places);
  return __real_sendmsg(fd, &cut, flags);
}

ssize_t __wrap_recv(int fd, void* data, size_t bytes, int flags) {
  tcpx::Fault fault;
  ssize_t result = 0;
  if (tcpx::Answered(fd, tcpx::FlowDirection::kReceive, &fault, &result)) return result;
  return __real_recv(fd, data, tcpx::Cut(bytes, fault), flags);
}

// What gcc makes of recv with -D_FORTIFY_SOURCE where it knows the buffer.
ssize_t __wrap___recv_chk(int fd, void* data, size_t bytes, size_t, int flags) {
  return __wrap_recv(fd, data, bytes, flags);
}

ssize_t __wrap_recvmsg(int fd, msghdr* message, int flags) {
  tcpx::Fault fault;
  ssize_t result = 0;
  if (tcpx::Answered(fd, tcpx::FlowDirection::kReceive, &fault, &result)) return result;
  iovec places[tcpx::kPlacesMax];
  msghdr cut = tcpx::Cut(*message, fault, places);
  return __real_recvmsg(fd, &cut, flags);
}

// Events come twice.
int __wrap_epoll_wait(int epoll, epoll_event* events, int max, int timeout) {
  int count = __real_epoll_wait(epoll, events, max, timeout);
  for (int i = 0, told = count; i < told && count < max; ++i) {
    if (tcpx::Faults::Get().Duplicate(epoll)) events[count++] = events[i];
  }
  return count;
}

}  // extern "C"
