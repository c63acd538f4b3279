// past_windows.h: what a connection's latest windows without a trial brought, and by how much they differ by themselves.
//
// Purpose: a trial's window is compared with the best of several, and counts only if noise alone can't explain it. Noise is
//          the median difference of neighbours: a path that changes its rate makes one large difference, and no noise.
//          Pure.
//
// Threads: one at a time. Units: bytes per second.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_SEND_PAST_WINDOWS_H_
#define TCPX_NET_SOCKET_SEND_PAST_WINDOWS_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace tcpx {

class PastWindows {
 public:
  static constexpr double kNoiseMax = 0.25;

  void Add(double total) {
    if (last_ > 0) changes_[changes_seen_++ % kCount] = std::abs(total - last_) / std::max(total, last_);
    last_ = totals_[seen_++ % kCount] = total;
  }
  // The connection now brings `total`: those before say nothing of what it can do. Noise stays what it was.
  void Anew(double total) {
    totals_.fill(total);
    last_ = 0;
  }
  double top() const { return *std::max_element(totals_.begin(), totals_.end()); }
  // About the standard deviation, as a part of the total; 0 while too little is known.
  double noise() const {
    if (changes_seen_ < kCount / 2) return 0;
    auto sorted = changes_;
    const size_t known = std::min(changes_seen_, kCount);
    std::nth_element(sorted.begin(), sorted.begin() + known / 2, sorted.begin() + known);
    return std::min(sorted[known / 2], kNoiseMax);
  }

 private:
  static constexpr size_t kCount = 8;

  std::array<double, kCount> totals_{};
  std::array<double, kCount> changes_{};
  size_t seen_ = 0;
  size_t changes_seen_ = 0;
  double last_ = 0;  // 0: what comes next has no neighbour
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEND_PAST_WINDOWS_H_
