// connect_bounds.h: for how long a connect is tried, and for how long an acceptor waits for the rest of one.
//
// Purpose: they follow from TCPX_HELLO_TIMEOUT, NCCL_SOCKET_RETRY_CNT and NCCL_SOCKET_RETRY_SLEEP_MSEC.
// Threads: pure.
// Units:   nanoseconds; at most ten years. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.h"
#include "common/params.h"

namespace tcpx {

// Without progress for this long, a connect or an accept is worth a WARN: longer than a lost SYN or two take.
inline constexpr int64_t kNoProgressNs = 5 * kSecond;

// So many hellos that run out of time, and all pauses between the tries of a lane, `rounds` times.
inline int64_t BoundNs(const Options& options, double hellos, int rounds = 1) {
  const double pauses_ns =
      0.5 * options.retry_count * (options.retry_count + 1.0) * static_cast<double>(options.retry_sleep_ns);
  const double ns = hellos * static_cast<double>(options.hello_timeout_ns) + rounds * pauses_ns;
  return static_cast<int64_t>(std::min(ns, 3650.0 * 86400 * kSecond));
}

// How long a whole connect may take: as if every try of a lane, and one more, ran out of time, with the pauses.
inline int64_t ConnectBoundNs(const Options& options) { return BoundNs(options, options.retry_count + 2.0); }

// How long an incoming connection may stay incomplete, or a health socket unused. A dialler that is slower begins anew.
inline int64_t PatienceNs(const Options& options) { return BoundNs(options, 2); }

// The bounds of an accept that waits (accept_watch.h). There is none for a dialler that is merely late.
struct AcceptBounds {
  int64_t no_progress_ns = kNoProgressNs;
  int64_t incomplete_ns = 0;  // from the first lane that came, while no connection is whole: its dialler has given up
  int64_t lost_ns = 0;        // that none of the addresses is this host's
};
inline AcceptBounds AcceptBoundsOf(const Options& options) {
  return {kNoProgressNs, BoundNs(options, options.retry_count + 4.0, 2), PatienceNs(options)};
}

}  // namespace tcpx
