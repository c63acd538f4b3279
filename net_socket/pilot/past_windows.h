// past_windows.h: what a connection's latest looks without a trial brought, and how much they vary.
//
// Purpose: a trial's look is compared with the best of these, and counts only if noise alone can't explain it. Noise is
//          the median difference between one look and the next: if a path changes its rate, one difference is large,
//          and noise stays. If several looks in a row are far from the average, the path has changed. Pure.
// Threads: one at a time. Units: bytes per second. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "net_socket/pilot/tuning.h"

namespace tcpx {

class PastWindows {
 public:
  // True exactly when the path now brings less than before: earlier looks no longer count.
  bool Add(double total);
  // The latest Add found that it brings more.
  bool rose() const { return rose_; }
  // The connection now brings `total`: earlier looks no longer count, except for noise.
  void Anew(double total);
  // What comes next may be another kind of traffic.
  void WasStill() { average_ = 0; }
  // It brings `total` with fewer lanes.
  void Thinned(double total) { average_ = total; }

  double top() const { return *std::max_element(totals_.begin(), totals_.end()); }
  // 0: not known.
  double average() const { return average_; }
  // About the standard deviation, as a part of the total; 0 while too little is known.
  double noise() const;
  bool below_best() const { return average_ < tuning::kBelowBest * best_; }

 private:
  static constexpr size_t kCount = tuning::kPastLooks;

  std::array<double, kCount> totals_{};
  std::array<double, kCount> changes_{};
  size_t seen_ = 0;
  size_t changes_seen_ = 0;
  double last_ = 0;     // 0: what comes next has no neighbour
  double average_ = 0;  // 0: what comes next begins it
  double best_ = 0;     // best recent average
  int low_ = 0;         // in a row, far below the average
  int high_ = 0;        // far above it
  bool rose_ = false;
};

}  // namespace tcpx
