#include "net_socket/health/slow_lanes.h"

#include <algorithm>

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

bool LaneLosses::News(size_t lane, bool loses) {
  const bool news = loses && !reported_[lane];
  reported_[lane] = loses;
  return news;
}

bool SlowLanes::SlowNow(const LanePace& pace, int64_t median, const History& history, int64_t elapsed_ns) const {
  const double moved = static_cast<double>(pace.bytes_sent - history.bytes_sent);
  const double allowed =
      static_cast<double>(pace.bytes_per_second) * static_cast<double>(elapsed_ns) / static_cast<double>(kSecond);
  return pace.carries && pace.bytes_per_second < median / 2 && moved >= allowed / 2;
}

bool SlowLanes::any() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const History& lane) { return lane.reported; });
}

std::vector<SlowLane> SlowLanes::Look(const std::vector<LanePace>& lanes, int64_t now_ns, int64_t long_ns) {
  std::vector<SlowLane> found;
  const bool first = lanes_.empty();
  lanes_.resize(lanes.size());
  const int64_t median = MedianOf(lanes);
  for (size_t i = 0; i < lanes.size(); ++i) {
    History& history = lanes_[i];
    const bool slow = !first && SlowNow(lanes[i], median, history, now_ns - last_ns_);
    history.bytes_sent = lanes[i].bytes_sent;
    if (!slow) {
      history.looks = 0;
      history.reported &= lanes[i].bytes_per_second < median / 2;
      continue;
    }
    if (history.looks++ == 0) history.since_ns = last_ns_;
    if (history.reported || history.looks < kLooksMin || now_ns - history.since_ns < long_ns) continue;
    history.reported = true;
    found.push_back({i, lanes[i].bytes_per_second, median});
  }
  last_ns_ = now_ns;
  return found;
}

}  // namespace tcpx
