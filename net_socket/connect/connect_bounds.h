// connect_bounds.h: for how long a connect is tried, and for how long an acceptor waits for the rest of one.
//
// Purpose: both follow from TCPX_HELLO_TIMEOUT, NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC.
//
// Threads: pure.
// Units:   nanoseconds; at most ten years.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_CONNECT_CONNECT_BOUNDS_H_
#define TCPX_NET_SOCKET_CONNECT_CONNECT_BOUNDS_H_

#include <cstdint>

#include "common/params.h"

namespace tcpx {

// Of a whole connect: as if every try of a lane ran out of time, one more, and the pauses between them.
int64_t ConnectBoundNs(const Options& options);

// Of an incoming connection that is not complete, or a health socket that no connection uses yet. A dialler that is
// slower than that begins anew.
int64_t PatienceNs(const Options& options);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_CONNECT_CONNECT_BOUNDS_H_
