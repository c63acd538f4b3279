// lane_losses.h: which of a connection's lanes loses packets, over some time. Pure, fed by housekeeping's round.
//
// Rule:    shares are taken over stretches of the given time at the least. A lane is named at the end of the first
//          stretch in which it loses (verdict.h's JudgePace), and again only after one in which it did not.
// Threads: one at a time.
// Units:   segments; nanoseconds of MonotonicNanos. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcpx {

// Segments of a lane's socket, since it was made.
struct LaneSegments {
  uint64_t sent = 0;
  uint64_t retransmitted = 0;  // for a reason
};

class LaneLosses {
 public:
  // Whether there is anything to look for: a look costs a system call or two a lane.
  bool Due(int64_t now_ns, int64_t long_ns) const { return begin_.empty() || now_ns - begun_ns_ >= long_ns; }
  // True once a stretch is over: share() is of it. Fewer than before: it is another socket.
  bool Look(const std::vector<LaneSegments>& lanes, int64_t now_ns, int64_t long_ns);
  // In the latest stretch.
  LaneSegments share(size_t lane) const { return lane < stretch_.size() ? stretch_[lane] : LaneSegments(); }
  // Marks whether the lane loses; true exactly when that is new.
  bool News(size_t lane, bool loses);

 private:
  std::vector<LaneSegments> begin_;
  std::vector<LaneSegments> stretch_;
  std::vector<bool> told_;
  int64_t begun_ns_ = 0;
};

}  // namespace tcpx
