// shifted_clock.h: a monotonic clock that can be put on, for the whole process and the libraries it loads.
//
// Purpose: an hour goes by without waiting for it. The kernel's own timers (keepalive, retransmission) do not know.
// Use:     the program is linked with -rdynamic, so that its clock_gettime is found before libc's.
// Threads: any.
// Units:   seconds.
// Source:  clock_gettime(2), ld.so(8).
#pragma once

#include <cstdint>

namespace tcpx {

// CLOCK_MONOTONIC and its coarse twin read so much more from here on.
void ShiftClock(int64_t seconds);

}  // namespace tcpx
