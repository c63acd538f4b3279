// clock.h: monotonic time in integer nanoseconds.
//
// Purpose: one cheap clock for deadlines and statistics. Code that has deadlines takes `now` as an argument, so that a
//          test reaches each of them without sleeping.
// Threads: any.
// Units:   nanoseconds; the zero point is arbitrary and differs between hosts.
// Errors:  none: CLOCK_MONOTONIC is always there (clock_gettime(2)).
#pragma once

#include <time.h>

#include <cstdint>

namespace tcpx {

inline constexpr int64_t kMicrosecond = 1000;
inline constexpr int64_t kMillisecond = 1000 * kMicrosecond;
inline constexpr int64_t kSecond = 1000 * kMillisecond;

// Of any clock of clock_gettime(2).
inline int64_t NanosOf(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<int64_t>(now.tv_sec) * kSecond + now.tv_nsec;
}

inline int64_t MonotonicNanos() { return NanosOf(CLOCK_MONOTONIC); }

// The same clock as of the kernel's last tick: up to 10 ms late, for a tenth of the cost (CLOCK_MONOTONIC_COARSE).
inline int64_t CoarseMonotonicNanos() { return NanosOf(CLOCK_MONOTONIC_COARSE); }

}  // namespace tcpx
