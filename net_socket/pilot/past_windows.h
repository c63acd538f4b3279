// past_windows.h: what a connection's latest looks without a trial brought, and by how much they differ by themselves.
//
// Purpose: a trial's look is compared with the best of several, and counts only if noise alone can't explain it. Noise
//          is the median difference of neighbours: a path that changes its rate makes one large difference, and no
//          noise. Where the looks stay far from their average, the path has changed. Pure.
//
// Threads: one at a time. Units: bytes per second.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_PILOT_PAST_WINDOWS_H_
#define TCPX_NET_SOCKET_PILOT_PAST_WINDOWS_H_

#include <algorithm>
#include <array>
#include <cstddef>

#include "net_socket/pilot/tuning.h"

namespace tcpx {

class PastWindows {
 public:
  // True exactly when the path brings less than before. Those before then say nothing of what it can do.
  bool Add(double total);
  // The latest Add has seen that it brings more.
  bool rose() const { return rose_; }
  // The connection now brings `total`. Those before say nothing of what it can do. Noise stays what it was.
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
  double best_ = 0;     // average of late
  int low_ = 0;         // in a row, far below the average
  int high_ = 0;        // far above it
  bool rose_ = false;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PILOT_PAST_WINDOWS_H_
