// slow_lanes.h: which lanes of a connection have been slow for long, compared with its others.
//
// Purpose: the striper follows a slow flow by itself and says nothing; an operator who looks for a bad link wants to
//          know which flow it is. Pure, fed by housekeeping's round.
// Rule:    a lane is slow in a look when its pace is below half of the connection's median lane and it was kept busy
//          since the look before (it sent at least half of what its pace allows). A lane with little to do is not
//          judged. Slow for long: in each look of the given time, and in kLooksMin at the least.
// Threads: one at a time.
// Units:   bytes, segments, nanoseconds of MonotonicNanos, bytes per second. Errors: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcpx {

// Which of a connection's lanes loses packets, over some time. Pure, fed by housekeeping's round.
// Rule:    shares are taken over stretches of the given time at the least. A lane is named at the end of the first
//          stretch in which it loses (verdict.h's JudgePace), and again only after one in which it did not.

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
  bool News(size_t lane, bool loses) {
    const bool reported = reported_[lane];
    reported_[lane] = loses;
    return loses && !reported;
  }

 private:
  std::vector<LaneSegments> begin_;
  std::vector<LaneSegments> stretch_;
  std::vector<bool> reported_;
  int64_t begun_ns_ = 0;
};

struct LanePace {
  int64_t bytes_per_second = 0;  // 0: unknown
  uint64_t bytes_sent = 0;       // in all
  bool carries = true;           // else it is not there just now: nobody is compared with it, nor is it judged
};

struct SlowLane {
  size_t lane = 0;  // index of Look's vector
  int64_t bytes_per_second = 0;
  int64_t median = 0;  // bytes per second, of the connection's lanes
};

class SlowLanes {
 public:
  static constexpr int kLooksMin = 3;

  // The lanes that have become slow for long with this look; each is named again only after it was fast in between.
  // Always the same number of lanes.
  std::vector<SlowLane> Look(const std::vector<LanePace>& lanes, int64_t now_ns, int64_t long_ns);

  // A lane that was named has not been fast since.
  bool any() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const History& lane) { return lane.reported; });
  }

 private:
  struct History {
    uint64_t bytes_sent = 0;  // at the latest look
    int64_t since_ns = 0;     // first of the looks in a row in which the lane was slow
    int looks = 0;            // how many these are
    bool reported = false;
  };

  std::vector<History> lanes_;
  int64_t last_ns_ = 0;
};

}  // namespace tcpx
