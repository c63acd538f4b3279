#include "net_socket/nic/nic_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/nic/port_owners.h"
#include "net_socket/nic/shared_subnet.h"

namespace tcpx {
namespace {

// How often a range is searched while other sockets take its ports.
constexpr int kRounds = 10;

// Where the kernel forbids it, routing decides.
void TieTo(int fd, const std::string& device) {
  const absl::Status bound = BindToDevice(fd, device);
  if (!bound.ok()) TCPX_TRACE("%s; routing decides", std::string(bound.message()));
}

// An errno, or 0. `raced`: with SO_REUSEADDR two may be bound to a port at once. The second to listen is refused,
// and of two that do so at the same time both are.
int BindAndListen(int fd, const SocketAddress& address, bool* raced) {
  if (bind(fd, address.sockaddr(), address.length()) != 0) return errno;
  if (listen(fd, kListenBacklog) == 0) return 0;
  *raced = *raced || errno == EADDRINUSE;
  return errno;
}

// `forbidden`: how many of its ports this user may not have; the others are taken.
absl::Status RangeUsedUp(const SocketAddress& address, const PortRange& range, int forbidden) {
  std::string text = absl::StrCat("listen on ", address.HostString(), ": TCPX_PORT_RANGE=", range.low, "-", range.high);
  const bool all = forbidden > range.high - range.low;
  if (!all) {
    const std::string owners = DescribePortOwners(address, range);
    absl::StrAppend(&text, " has no free port", owners.empty() ? "" : " (taken: " + owners + ")");
  }
  if (forbidden > 0) {
    absl::StrAppend(&text, "; ", forbidden, " of its ports this user may not have (sysctl ",
                    "net.ipv4.ip_unprivileged_port_start): choose higher ones");
  }
  return ErrnoStatus(all ? EACCES : EADDRINUSE, text);
}

}  // namespace

absl::Status BindToNic(int fd, const Nic& nic, const SocketAddress& peer, LeaveBy way) {
  if (way == LeaveBy::kRoute) return absl::OkStatus();
  const std::string& name = nic.interface.name;
  SocketAddress local = nic.interface.address;
  if (local.family() != peer.family()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the peer's address %s is of another family than %s of %s: set NCCL_SOCKET_FAMILY alike on all ranks",
        peer.ToString(), local.HostString(), name));
  }
  const int one = 1;
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));  // Linux 4.2; the port is chosen by connect.
  local.set_port(0);
  if (bind(fd, local.sockaddr(), local.length()) != 0)
    return ErrnoStatus(errno, absl::StrCat("bind to ", local.HostString()));
  if (way == LeaveBy::kDevice && !local.IsLoopback()) TieTo(fd, name);
  return absl::OkStatus();
}

void TieAccepted(int fd, const Nic& nic) {
  if (!nic.interface.address.IsLoopback()) TieTo(fd, nic.interface.name);
}

bool LeavesBy(int fd, const Nic& nic, const std::vector<Nic>& nics, const SocketAddress& peer) {
  if (peer.IsLinkLocal() || BoundDevice(fd) == nic.interface.name) return true;
  const auto local = LocalAddress(fd);
  if (!local.ok() || !local->SameHostAddress(nic.interface.address)) return false;
  return std::all_of(nics.begin(), nics.end(), [&](const Nic& each) {
    return InSubnet(each.interface, peer) == (each.interface.name == nic.interface.name);
  });
}

absl::StatusOr<OwnedFd> ListenOnNic(const Nic& nic, bool bound, const PortRange& range) {
  SocketAddress address = nic.interface.address;
  int err = EADDRINUSE;
  int forbidden = 0;
  bool raced = true;
  for (int round = 0; raced && err == EADDRINUSE && round < kRounds; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::microseconds(MonotonicNanos() % 1000 * round));
    raced = false;
    forbidden = 0;
    for (int port = range.low; err == EADDRINUSE && port <= range.high; ++port) {
      address.set_port(static_cast<uint16_t>(port));
      // A socket for each port: one that was bound can't be bound again.
      auto fd = StreamSocket(address.family());
      if (!fd.ok()) return fd.status();
      if (bound && !address.IsLoopback()) TieTo(fd->get(), nic.interface.name);
      // What an earlier run left in TIME_WAIT doesn't count then.
      const absl::Status reuse = range.any() ? absl::OkStatus() : SetReuseAddress(fd->get());
      if (!reuse.ok()) return reuse;
      err = BindAndListen(fd->get(), address, &raced);
      if (err == 0) return fd;
      if (err == EACCES && !range.any()) {
        ++forbidden;
        err = EADDRINUSE;  // The next one may be free.
      }
    }
  }
  if (err == EADDRINUSE && !range.any()) return RangeUsedUp(address, range, forbidden);
  return ErrnoStatus(err, "listen on " + address.ToString());
}

}  // namespace tcpx
