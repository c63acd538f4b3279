// lane_silence.h: when it is suspected that the network swallows a lane.
//
// Purpose: long before lane_liveness.h gives a lane up, another socket can be tried in addition. Pure.
// Rule:    A lane is suspected when it holds unacknowledged bytes, none was acknowledged for kSilentNs, nothing of the
//          peer's came for as long, and the kernel has sent again, or has probed a window that is shut, kUnansweredMin
//          times without an answer; one probe is enough when its answer is overdue (kProbeAnswerNs). A peer that does
//          not read answers probes. Where a lane was moved a short while ago, and nothing of it has moved since, the
//          times double.
// Threads: one at a time.
// Units:   nanoseconds of MonotonicNanos. Errors: none.
#pragma once

#include <cstdint>

#include "common/clock.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"

namespace tcpx {

class LaneSilence {
 public:
  // True exactly when the rule above says so. Each look at a socket that holds something.
  bool Suspects(const LaneTcpInfo& lane, int64_t now_ns);
  // The lane holds nothing, or waits for another socket.
  void Forget() { since_ns_ = 0; }
  // It has been given another socket for its silence.
  void Moved(int64_t now_ns);
  // Something of it has moved.
  void Carried() {
    long_ns_ = tuning::kSilentNs;
    moved_ns_ = 0;
  }

 private:
  uint64_t bytes_acked_ = 0;
  int64_t since_ns_ = 0;  // the first look of this silence; 0: none
  int64_t long_ns_ = tuning::kSilentNs;
  int64_t moved_ns_ = 0;
};

}  // namespace tcpx
