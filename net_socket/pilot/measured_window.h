// measured_window.h: what each lane of a connection brought in one look, in which the connection never paused.
//
// Threads: one at a time. Units: bytes, nanoseconds. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/clock.h"
#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {

// The upper one, where they are an even number; at least one.
template <typename Value>
Value MedianOf(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class MeasuredWindow {
 public:
  enum class Progress { kStill, kMeasures, kWhole };

  explicit MeasuredWindow(int lanes) : lanes_(static_cast<size_t>(lanes)) {}

  // Measuring begins at that time, or now. What was measured is forgotten.
  void Start(int64_t from_ns);
  Progress Measure(int64_t now_ns, const LanePolicy::Look& look);

  // Bytes per second of all lanes.
  double total() const { return PerSecond(static_cast<double>(brought_)); }
  // Bytes per second of the process's other connections; 0: not known.
  double others() const { return PerSecond(static_cast<double>(others_)); }
  // In at least half of the steps the network was the limit.
  bool limited() const { return limited_steps_ * 2 >= steps_; }
  uint64_t Brought(int lane) const { return lanes_[static_cast<size_t>(lane)].brought; }
  // The lane had little to send.
  bool WasDry(int lane) const { return tuning::kDryPart * lanes_[static_cast<size_t>(lane)].dry_steps > steps_; }

 private:
  struct Lane {
    uint64_t acked = 0;  // at the step before
    uint64_t brought = 0;
    int dry_steps = 0;  // in which it held nothing
  };

  // 0 while nothing was measured.
  double PerSecond(double bytes) const {
    return measured_ns_ == 0 ? 0 : bytes * kSecond / static_cast<double>(measured_ns_);
  }

  std::vector<Lane> lanes_;
  int64_t last_ns_ = 0;      // the step before; 0: none
  int64_t from_ns_ = 0;      // where measuring begins
  int64_t measured_ns_ = 0;  // time so far
  uint64_t brought_ = 0;     // bytes in it
  uint64_t all_ = 0;         // of the process, at the step before
  int64_t others_ = 0;       // bytes of the others in it
  int steps_ = 0;            // in it
  int limited_steps_ = 0;    // of them, with Look::limited
};

// What a connection's latest looks without a trial brought, and how much they vary.
// Purpose: a trial's look is compared with the best of these, and counts only if noise alone can't explain it. Noise is
//          the median difference between one look and the next: if a path changes its rate, one difference is large,
//          and noise stays. If several looks in a row are far from the average, the path has changed. Pure.
// Units:   bytes per second.
class PastWindows {
 public:
  enum class Change { kNone, kFell, kRose };

  // What the path brings now, as `looks` in a row have said: earlier looks no longer count then.
  Change Add(double total, int looks = tuning::kLowLooksMax);
  // The connection now brings `total`: earlier looks no longer count, except for noise.
  void Anew(double total) {
    totals_.fill(total);
    last_ = average_ = 0;
  }
  // What comes next may be another kind of traffic, unless the path seems to have fallen.
  void WasStill() { average_ = low_ < tuning::kLowLooksMax ? 0 : average_; }
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
};

}  // namespace tcpx
