// measured_window.h: what each lane of a connection brought in one look, in which the connection never paused.
//
// Threads: one at a time. Units: bytes, nanoseconds. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "net_socket/pilot/lane_policy.h"

namespace tcpx {

class MeasuredWindow {
 public:
  enum class Progress { kStill, kMeasures, kWhole };

  explicit MeasuredWindow(int lanes) : lanes_(static_cast<size_t>(lanes)) {}

  // Measuring begins at that time, or now. What was measured is forgotten.
  void Start(int64_t from_ns);
  Progress Measure(int64_t now_ns, const LanePolicy::Look& look);

  // Bytes per second of all lanes.
  double total() const;
  // Bytes per second of the process's other connections; 0: not known.
  double others() const;
  // In at least half of the steps the network was the limit.
  bool limited() const { return limited_steps_ * 2 >= steps_; }
  uint64_t Brought(int lane) const { return lanes_[static_cast<size_t>(lane)].brought; }
  // The lane had little to send.
  bool WasDry(int lane) const;

 private:
  struct Lane {
    uint64_t acked = 0;  // at the step before
    uint64_t brought = 0;
    int dry_steps = 0;  // in which it held nothing
  };

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

}  // namespace tcpx
