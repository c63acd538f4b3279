// queue_probe.h: whether new lanes found an empty path, or the queue that all other lanes wait in.
//
// Rules:   docs/lanes.md. Only the first round trips of a new lane count: later it waits in its own queue. Pure.
// Threads: one at a time. Units: microseconds. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "net_socket/pilot/lane_policy.h"
#include "net_socket/pilot/piloted_lanes.h"

namespace tcpx {

class QueueProbe {
 public:
  // kAnother: the new lanes wait in a different queue. kUnknown: there is no queue, or the kernel does not say.
  enum class Found { kUnknown, kEmptyPath, kAnother, kSameQueue };

  // To be called in each step.
  void See(const LanePolicy::Look& look, const PilotedLanes& lanes);
  // A trial begins, for which the lanes `opened` are being opened.
  void Begin(const PilotedLanes& lanes, const PilotedLanes::Lanes& opened);
  // What the lanes that have opened since found.
  Found found() const;
  // Each of them has found something.
  bool complete() const;

 private:
  struct Opened {
    int lane = 0;
    int64_t least_us = 0;  // when it was new; 0: it is not open yet
  };

  std::vector<LanePolicy::RoundTrips> latest_;  // by lane; empty: not known
  int64_t base_us_ = 0;                         // the least of all, ever; 0: not known
  // The median of the lanes that carried before the trial; 0: not known.
  int64_t median_us_ = 0;
  bool alike_ = false;
  std::vector<Opened> opened_;
};

}  // namespace tcpx
