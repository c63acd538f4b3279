#include "bench/net_bench/raw_link.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <utility>

#include "common/status.h"

namespace tcpx {
namespace bench {
namespace {

struct Address {
  sockaddr_storage storage = {};
  socklen_t length = sizeof(storage);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

uint16_t* PortOf(Address* address) { return &reinterpret_cast<sockaddr_in*>(address->get())->sin_port; }

// Where rank 1 listens (`local`), respectively where rank 0 dials: the control connection's addresses.
Address ControlAddress(int control_fd, bool local) {
  Address address;
  const int failed = local ? getsockname(control_fd, address.get(), &address.length)
                           : getpeername(control_fd, address.get(), &address.length);
  if (failed == 0 && address.get()->sa_family != AF_UNIX) return address;
  sockaddr_in loopback = {};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Address fallback;
  *reinterpret_cast<sockaddr_in*>(&fallback.storage) = loopback;
  fallback.length = sizeof(loopback);
  return fallback;
}

absl::Status Configure(int fd, const std::string& congestion) {
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0) return ErrnoStatus(errno, "TCP_NODELAY");
  if (!congestion.empty() &&
      setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion.data(), static_cast<socklen_t>(congestion.size())) != 0) {
    return ErrnoStatus(errno, "--raw-cc " + congestion);
  }
  return absl::OkStatus();
}

absl::Status SetNonBlocking(int fd) {
  if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0) return ErrnoStatus(errno, "O_NONBLOCK");
  return absl::OkStatus();
}

// Rank 1's half: says the port, then takes `count` sockets in the order they were dialled.
absl::Status AcceptAll(int count, Control* control, std::vector<OwnedFd>* fds) {
  Address address = ControlAddress(control->fd(), /*local=*/true);
  *PortOf(&address) = 0;
  OwnedFd listener(socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!listener || bind(listener.get(), address.get(), address.length) != 0 || listen(listener.get(), 1024) != 0) {
    return ErrnoStatus(errno, "listen for bare sockets");
  }
  if (getsockname(listener.get(), address.get(), &address.length) != 0) return ErrnoStatus(errno, "getsockname");
  if (absl::Status status = control->Send<uint16_t>(*PortOf(&address)); !status.ok()) return status;
  for (int i = 0; i < count; ++i) {
    OwnedFd fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!fd) return ErrnoStatus(errno, "accept of a bare socket");
    fds->push_back(std::move(fd));
  }
  return absl::OkStatus();
}

absl::Status DialAll(int count, Control* control, std::vector<OwnedFd>* fds) {
  Address address = ControlAddress(control->fd(), /*local=*/false);
  uint16_t port = 0;
  if (absl::Status status = control->Receive(&port); !status.ok()) return status;
  *PortOf(&address) = port;
  for (int i = 0; i < count; ++i) {
    OwnedFd fd(socket(address.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd || connect(fd.get(), address.get(), address.length) != 0) {
      return ErrnoStatus(errno, "connect of a bare socket");
    }
    fds->push_back(std::move(fd));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RawLink>> RawLink::Create(const RawShape& shape, int rank, Control* control) {
  auto link = std::make_unique<RawLink>();
  const int count = shape.connections * shape.sockets * (shape.both_ways ? 1 : 2);
  absl::Status status = rank == 0 ? DialAll(count, control, &link->fds_) : AcceptAll(count, control, &link->fds_);
  for (const OwnedFd& fd : link->fds_) {
    if (status.ok()) status = Configure(fd.get(), shape.congestion);
    if (status.ok()) status = SetNonBlocking(fd.get());
  }
  if (!status.ok()) return status;
  link->AddChannels(shape, rank);
  return link;
}

void RawLink::AddChannels(const RawShape& shape, int rank) {
  size_t next = 0;
  const auto take = [&] {
    std::vector<int> fds;
    for (int i = 0; i < shape.sockets; ++i) fds.push_back(fds_[next++].get());
    return fds;
  };
  for (int i = 0; i < shape.connections; ++i) {
    const std::vector<int> forward = take();
    const std::vector<int> backward = shape.both_ways ? forward : take();
    AddChannel(/*sends=*/true, rank == 0 ? forward : backward);
    AddChannel(/*sends=*/false, rank == 0 ? backward : forward);
  }
}

void RawLink::AddChannel(bool sends, std::vector<int> fds) {
  channels_.push_back(std::make_unique<RawChannel>(sends, std::move(fds)));
  (sends ? sends_ : receives_).push_back(channels_.back().get());
}

std::string RawLink::congestion() const {
  char name[16] = {};  // TCP_CA_NAME_MAX
  socklen_t length = sizeof(name);
  if (fds_.empty() || getsockopt(fds_[0].get(), IPPROTO_TCP, TCP_CONGESTION, name, &length) != 0) return "unknown";
  return name;
}

}  // namespace bench
}  // namespace tcpx
