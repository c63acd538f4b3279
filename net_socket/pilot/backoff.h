// backoff.h: when something is tried again. Each failure doubles the pause.
//
// Threads: one at a time. Units: nanoseconds. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net_socket/pilot/tuning.h"

namespace tcpx {

class Backoff {
 public:
  explicit Backoff(int64_t first_ns, int64_t max_ns = tuning::kEveryMaxNs)
      : first_ns_(first_ns), max_ns_(max_ns), wait_ns_(first_ns) {}

  // False until a time was set.
  bool started() const { return next_ns_ != 0; }
  bool Due(int64_t now_ns) const { return started() && now_ns >= next_ns_; }
  // No try has failed lately.
  bool fresh() const { return wait_ns_ == first_ns_; }
  void At(int64_t next_ns) { next_ns_ = next_ns; }
  void NoLaterThan(int64_t next_ns) { next_ns_ = std::min(next_ns_, next_ns); }
  void RestartAt(int64_t next_ns) { wait_ns_ = first_ns_, next_ns_ = next_ns; }
  void RestartAfterFirst(int64_t now_ns) { RestartAt(now_ns + first_ns_); }
  // `jitter`: about 1, a factor of this pause.
  void InVain(int64_t now_ns, double jitter) {
    next_ns_ = now_ns + static_cast<int64_t>(static_cast<double>(wait_ns_) * jitter);
    wait_ns_ = std::min(2 * wait_ns_, max_ns_);
  }

 private:
  int64_t first_ns_;
  int64_t max_ns_;
  int64_t wait_ns_;
  int64_t next_ns_ = 0;
};

}  // namespace tcpx
