#include "net_socket/health/slow_lanes.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"

namespace tcpx {
namespace {

// The upper one: of two lanes the faster. 0 while any lane's pace is unknown.
int64_t MedianOf(const std::vector<LanePace>& lanes) {
  std::vector<int64_t> paces;
  for (const LanePace& lane : lanes) {
    if (lane.carries) paces.push_back(lane.bytes_per_second);
  }
  if (paces.size() < 2) return 0;
  const auto middle = paces.begin() + static_cast<ptrdiff_t>(paces.size() / 2);
  std::nth_element(paces.begin(), middle, paces.end());
  const bool unknown = std::find(paces.begin(), paces.end(), 0) != paces.end();
  return unknown ? 0 : *middle;
}

}  // namespace

bool LaneLosses::Look(const std::vector<LaneSegments>& lanes, int64_t now_ns, int64_t long_ns) {
  if (begin_.size() != lanes.size()) {
    begin_ = lanes;
    begun_ns_ = now_ns;
    stretch_.assign(lanes.size(), LaneSegments());
    reported_.resize(lanes.size());
    return false;
  }
  if (now_ns - begun_ns_ < long_ns) return false;
  for (size_t i = 0; i < lanes.size(); ++i) {
    const bool another = lanes[i].sent < begin_[i].sent || lanes[i].retransmitted < begin_[i].retransmitted;
    const LaneSegments from = another ? LaneSegments() : begin_[i];
    stretch_[i] = {lanes[i].sent - from.sent, lanes[i].retransmitted - from.retransmitted};
  }
  begin_ = lanes;
  begun_ns_ = now_ns;
  return true;
}

std::vector<SlowLane> SlowLanes::Look(const std::vector<LanePace>& lanes, int64_t now_ns, int64_t long_ns) {
  std::vector<SlowLane> found;
  const bool first = lanes_.empty();
  lanes_.resize(lanes.size());
  const int64_t median = MedianOf(lanes);
  const double elapsed_ns = static_cast<double>(now_ns - last_ns_);
  for (size_t i = 0; i < lanes.size(); ++i) {
    const LanePace& pace = lanes[i];
    History& history = lanes_[i];
    const double moved = static_cast<double>(pace.bytes_sent - std::exchange(history.bytes_sent, pace.bytes_sent));
    const double allowed = static_cast<double>(pace.bytes_per_second) * elapsed_ns / kSecond;
    const bool below = pace.bytes_per_second < median / 2;
    if (first || !pace.carries || !below || moved < allowed / 2) {
      history.looks = 0;
      history.reported &= below;
      continue;
    }
    if (history.looks++ == 0) history.since_ns = last_ns_;
    if (history.reported || history.looks < kLooksMin || now_ns - history.since_ns < long_ns) continue;
    history.reported = true;
    found.push_back({i, pace.bytes_per_second, median});
  }
  last_ns_ = now_ns;
  return found;
}

}  // namespace tcpx
