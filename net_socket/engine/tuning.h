// tuning.h: the engine's numbers for healing and verdicts, in the form of net_socket/pilot/tuning.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/clock.h"

namespace tcpx::tuning {

// == docs/healing.md: sockets and deadlines

// A deadline that is served later than this is the delay of this process, not of the peer, and is awaited once more:
// far above what a busy machine delays the loop, far below any deadline. [ns]
inline constexpr int64_t kStandstillNs = kSecond;
// Timers wait this long for what has arrived, if that does not end: long enough to serve what a standstill has left,
// short compared with every deadline. [ns]
inline constexpr int64_t kTimersWaitNs = 10 * kMillisecond;
// A lost socket is read to its end in pieces of this size. [bytes]
inline constexpr size_t kFrozenReadBytes = 256 << 10;
// Interrupted reads, or reads without memory, in a row, before that ends. [reads]
inline constexpr int kEmptyReadsMax = 1000;

}  // namespace tcpx::tuning
