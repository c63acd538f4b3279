#include "bench/net_bench/control.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/status.h"

namespace tcpx {
namespace bench {
namespace {

absl::Status Gone() { return absl::UnavailableError("the other process closed the control connection"); }

absl::Status TransferError(int err, const char* what) {
  if (err == EPIPE || err == ECONNRESET) return Gone();
  return ErrnoStatus(err, what);
}

OwnedFd DialOnce(const addrinfo& address) {
  OwnedFd fd(socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd && connect(fd.get(), address.ai_addr, address.ai_addrlen) != 0) {
    const int err = errno;
    fd.reset();
    errno = err;
  }
  return fd;
}

void NoDelay(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

// Takes both families where the host has IPv6.
OwnedFd ListeningSocket(int port) {
  OwnedFd fd(socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  const int off = 0;
  sockaddr_in6 any6 = {};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(static_cast<uint16_t>(port));
  if (fd) {
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd.get(), reinterpret_cast<sockaddr*>(&any6), sizeof(any6)) == 0) return fd;
  }
  fd.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in any4 = {};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&any4), sizeof(any4)) != 0) fd.reset();
  return fd;
}

int BoundPort(int fd) {
  sockaddr_storage address = {};
  socklen_t length = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length);
  // The port has the same place in both families.
  return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
}

}  // namespace

absl::Status Control::SendBytes(const void* data, size_t bytes) {
  const char* next = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(fd_.get(), next, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return TransferError(errno, "send on the control connection");
    next += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return absl::OkStatus();
}

absl::Status Control::ReceiveBytes(void* data, size_t bytes) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(fd_.get(), next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return TransferError(errno, "receive on the control connection");
    if (got == 0) return Gone();
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

absl::Status Control::SendBlob(const std::vector<uint8_t>& blob) {
  absl::Status status = Send<uint64_t>(blob.size());
  return status.ok() ? SendBytes(blob.data(), blob.size()) : status;
}

absl::Status Control::Exchange(const std::vector<uint8_t>* said, Control* in, std::vector<uint8_t>* heard,
                               size_t bytes_max) {
  absl::Status sent;
  std::thread speaker([&] {
    if (said != nullptr) sent = SendBlob(*said);
  });
  const absl::Status received = heard == nullptr ? absl::OkStatus() : in->ReceiveBlob(heard, bytes_max);
  if (!received.ok()) shutdown(fd(), SHUT_RDWR);  // Who fails hears nothing more either.
  speaker.join();
  return received.ok() ? sent : received;
}

absl::Status Control::ReceiveBlob(std::vector<uint8_t>* blob, size_t bytes_max) {
  uint64_t bytes = 0;
  if (absl::Status status = Receive(&bytes); !status.ok()) return status;
  if (bytes > bytes_max) {
    return absl::InvalidArgumentError(absl::StrCat("the other process announced ", bytes, " bytes"));
  }
  blob->resize(bytes);
  return ReceiveBytes(blob->data(), bytes);
}

absl::Status Control::SpinForByte() {
  char byte;
  for (;;) {
    const ssize_t got = recv(fd_.get(), &byte, 1, MSG_DONTWAIT);
    if (got == 1) return absl::OkStatus();
    if (got == 0) return Gone();
    if (errno != EAGAIN && errno != EINTR) return TransferError(errno, "receive on the control connection");
  }
}

absl::Status Control::Meet(bool opens) {
  const char byte = 'm';
  if (!opens) {
    if (absl::Status status = Send(byte); !status.ok()) return status;
    return SpinForByte();
  }
  if (absl::Status status = SpinForByte(); !status.ok()) return status;
  return Send(byte);
}

absl::StatusOr<std::pair<std::unique_ptr<Control>, std::unique_ptr<Control>>> ControlPair() {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) return ErrnoStatus(errno, "socketpair");
  return std::make_pair(std::make_unique<Control>(OwnedFd(fds[0])), std::make_unique<Control>(OwnedFd(fds[1])));
}

absl::StatusOr<std::unique_ptr<Control>> ListenForControl(int port) {
  OwnedFd listener = ListeningSocket(port);
  if (!listener || listen(listener.get(), 1) != 0) return ErrnoStatus(errno, absl::StrCat("listen on port ", port));
  fprintf(stderr, "net_bench: listening on port %d\n", BoundPort(listener.get()));
  OwnedFd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd) return ErrnoStatus(errno, "accept of the control connection");
  NoDelay(fd.get());
  return std::make_unique<Control>(std::move(fd));
}

absl::StatusOr<std::unique_ptr<Control>> DialControl(const std::string& host, int port, int patience_s) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &list);
  if (failed != 0) return absl::UnavailableError(absl::StrCat(host, ": ", gai_strerror(failed)));
  std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, freeaddrinfo);
  const int64_t deadline = MonotonicNanos() + patience_s * kSecond;
  for (;;) {
    for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
      OwnedFd fd = DialOnce(*address);
      if (!fd) continue;
      NoDelay(fd.get());
      return std::make_unique<Control>(std::move(fd));
    }
    const int err = errno;
    if (MonotonicNanos() > deadline) return ErrnoStatus(err, absl::StrCat("connect to ", host, " port ", port));
    const timespec pause = {0, 100 * kMillisecond};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace bench
}  // namespace tcpx
