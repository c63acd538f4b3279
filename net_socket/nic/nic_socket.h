// nic_socket.h: sockets that belong to one network interface, on both ends of a lane.
//
// Purpose: where several interfaces lie in one subnet the kernel routes by destination, so that everything would leave
//          by the first of them. An address alone does not change that; SO_BINDTODEVICE does, and on a listening socket
//          it also takes the answer to a SYN along. When that is safe: routing.h.
// Threads: any.
// Errors:  the local kernel's; kInvalidArgument for a peer of another address family that is bound to. A kernel that
//          forbids SO_BINDTODEVICE (before Linux 5.7, for unprivileged users) leaves it to routing.
// Source:  socket(7); packets within the host count as come in by the interface of their address since Linux 4.14.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/fd.h"
#include "common/params.h"
#include "net_socket/nic/device.h"
#include "net_socket/nic/path_profile.h"

namespace tcpx {

// Sockets that wait to be accepted, as NCCL's listening sockets; the kernel cuts it to net.core.somaxconn.
inline constexpr int kListenBacklog = 16384;

// Before connect: what `way` says; loopback is never tied.
absl::Status BindToNic(int fd, const Nic& nic, const SocketAddress& peer, LeaveBy way);

// SO_BINDTODEVICE, unless it is loopback. An accepted socket's packets leave by the interface from now on: for peers in
// its subnet.
void TieToNic(int fd, const Nic& nic);

// True exactly when a connected socket is sure to leave by this interface of `nics`: it is tied to it, or has its
// address and a peer in its subnet, which is no other's. Else routes choose, whatever address it has.
bool LeavesBy(int fd, const Nic& nic, const std::vector<Nic>& nics, const SocketAddress& peer);

// Listens on the interface's address. `bound`: only peers that come in by the interface can connect (processes of this
// host can in any case), and accepted sockets stay on it; else everybody who reaches the address. Takes the first port
// of `range` on which nobody listens, even if the kernel still remembers connections of earlier runs there. If no port
// is free, the error names the processes that have them, and the ports that the user may not use.
absl::StatusOr<OwnedFd> ListenOnNic(const Nic& nic, bool bound, const PortRange& range);

}  // namespace tcpx
