// connect_bounds.h: for how long a connect is tried, and for how long an acceptor waits for the rest of one.
//
// Purpose: they follow from TCPX_HELLO_TIMEOUT, NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC.
// Threads: pure.
// Units:   nanoseconds; at most ten years. Errors: none.
#pragma once

#include <cstdint>

#include "common/clock.h"
#include "common/params.h"

namespace tcpx {

// Without progress for this long, a connect or an accept is worth a WARN: longer than a lost SYN or two take.
inline constexpr int64_t kNoProgressNs = 5 * kSecond;

// How long a whole connect may take: as if every try of a lane, and one more, ran out of time, with the pauses.
int64_t ConnectBoundNs(const Options& options);

// How long an incoming connection may stay incomplete, or a health socket unused. A dialler that is slower begins anew.
int64_t PatienceNs(const Options& options);

// The bounds of an accept that waits (accept_watch.h). There is none for a dialler that is merely late.
struct AcceptBounds {
  int64_t no_progress_ns = kNoProgressNs;
  int64_t incomplete_ns = 0;  // from the first lane that came, while no connection is whole: its dialler has given up
  int64_t lost_ns = 0;        // that none of the addresses is this host's
};
AcceptBounds AcceptBoundsOf(const Options& options);

}  // namespace tcpx
