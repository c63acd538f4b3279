// ring_refusal.h: why the kernel gave no ring, and what an operator can do about it.
//
// Threads: any.
// Errors:  none of its own.
// Source:  io_uring_setup(2): EPERM by sysctl or seccomp, ENOSYS, ENOMEM. A ring counted as locked memory
//          (RLIMIT_MEMLOCK, per user) up to Linux 5.11; later it counts as memory of the container.
#ifndef TCPX_NET_SOCKET_ENGINE_RING_REFUSAL_H_
#define TCPX_NET_SOCKET_ENGINE_RING_REFUSAL_H_

#include "absl/status/status.h"

namespace tcpx {

// For errno `err` of io_uring_setup, or of io_uring_enter's first call.
absl::Status RingRefusal(int err);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_ENGINE_RING_REFUSAL_H_
