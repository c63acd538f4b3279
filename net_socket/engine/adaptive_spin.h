// adaptive_spin.h: how long a progress thread looks for more work before it sleeps.
//
// Purpose: spinning pays only where work comes again soon. Each gap between two pieces of work that spinning could have
//          bridged doubles the time, up to the maximum; each longer one halves it, down to a sixteenth: so a thread
//          that is needed once a millisecond does not burn its CPU for a twentieth of the time. Pure.
// Threads: one at a time. Units: nanoseconds. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tcpx {

class AdaptiveSpin {
 public:
  explicit AdaptiveSpin(int64_t max_ns) : max_ns_(max_ns), limit_ns_(max_ns) {}

  // After this long without work a thread sleeps.
  int64_t limit_ns() const { return limit_ns_; }
  // There is work again, `gap_ns` after the last.
  void WorkAfter(int64_t gap_ns) {
    limit_ns_ = gap_ns <= max_ns_ ? std::min(2 * limit_ns_, max_ns_) : std::max(limit_ns_ / 2, max_ns_ / 16);
  }

 private:
  const int64_t max_ns_;
  int64_t limit_ns_;
};

}  // namespace tcpx
