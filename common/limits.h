// limits.h: how many of a thing there may be, where parameters, NCCL's tables and the wire have to agree.
//
// Threads: constants. Units: as named.
#pragma once

namespace tcpx {

// Most lanes of a connection: as NCCL's sockets per connection (NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD <= 64).
inline constexpr int kLanesMax = 64;
// Most NCCL_SOCKET_NTHREADS: as NCCL's.
inline constexpr int kSocketThreadsMax = 16;
// Most interfaces of one device: the children of a virtual one, NCCL_NET_MAX_DEVS_PER_NIC of v12 (4 before).
inline constexpr int kNicsMax = 8;
// Most members of a grouped receive: what this plugin ever announces as maxRecvs.
inline constexpr int kReceivesMax = 8;

}  // namespace tcpx
