// connect_bounds.h: for how long a connect is tried, and for how long an acceptor waits for the rest of one.
//
// Purpose: they follow from TCPX_HELLO_TIMEOUT, NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC.
//
// Threads: pure.
// Units:   nanoseconds; at most ten years.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_CONNECT_CONNECT_BOUNDS_H_
#define TCPX_NET_SOCKET_CONNECT_CONNECT_BOUNDS_H_

#include <cstdint>

#include "common/clock.h"
#include "common/params.h"

namespace tcpx {

// Without progress for so long, a connect or an accept is worth a WARN: longer than a lost SYN or two take.
inline constexpr int64_t kNoProgressNs = 5 * kSecond;

// Of a whole connect: as if every try of a lane ran out of time, one more, and the pauses between them.
int64_t ConnectBoundNs(const Options& options);

// Of an incoming connection that is not complete, or a health socket that no connection uses yet. A dialler that is
// slower than that begins anew.
int64_t PatienceNs(const Options& options);

// Of an accept that waits (accept_watch.h). A dialler that is merely late has no bound.
struct AcceptBounds {
  int64_t no_progress_ns = kNoProgressNs;
  int64_t incomplete_ns = 0;  // from the first lane that came, while no connection is whole: its dialler has given up
  int64_t lost_ns = 0;        // that none of the addresses is this host's
};
AcceptBounds AcceptBoundsOf(const Options& options);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_CONNECT_CONNECT_BOUNDS_H_
