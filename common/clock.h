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

inline int64_t MonotonicNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * kSecond + now.tv_nsec;
}

// The same clock as of the kernel's last tick: up to 10 ms late, for a tenth of the cost (CLOCK_MONOTONIC_COARSE).
inline int64_t CoarseMonotonicNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<int64_t>(now.tv_sec) * kSecond + now.tv_nsec;
}

}  // namespace tcpx
