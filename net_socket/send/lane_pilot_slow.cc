// Which of a connection's lanes are slow: those that are paused for it, and those that thinning tries without.
#include <algorithm>
#include <vector>

#include "net_socket/send/lane_pilot.h"

namespace tcpx {
namespace {

// A lane below this part of the median. Slower than its sisters does no harm: it holds what drains at its own pace.
constexpr double kLame = 0.05;
// Times in a row that a lane was lame, after which it goes another way, and after which it is closed.
constexpr int kLameMove = 20, kLameMax = 40;

}  // namespace

// All that carried before may be lame by now: they go on, rather than nobody, when those that were tried go.
void LanePilot::KeepOthers() {
  const auto tried = [this](int lane) { return std::find(tried_.begin(), tried_.end(), lane) != tried_.end(); };
  const Lanes carrying = Those(State::kCarries);
  if (!std::all_of(carrying.begin(), carrying.end(), tried)) return;
  for (int lane : Those(State::kLame)) state(lane) = tried(lane) ? State::kLame : State::kCarries;
}

int64_t LanePilot::MeasuredMedian() const {
  std::vector<int64_t> each;
  for (int lane : Those(State::kCarries)) {
    each.push_back(static_cast<int64_t>(lanes_[static_cast<size_t>(lane)].measured));
  }
  if (each.size() < 2) return 0;
  const auto middle = each.begin() + static_cast<ptrdiff_t>(each.size() / 2);
  std::nth_element(each.begin(), middle, each.end());
  return *middle;
}

// Slow, and not just given little.
bool LanePilot::Lame(const Lane& lane, double floor) const {
  return static_cast<double>(lane.measured) < floor && 4 * lane.dry_steps <= steps_;
}

// Without a test: whatever little it brings, a message waits for it.
bool LanePilot::PauseLame(int64_t now_ns) {
  const double floor = kLame * static_cast<double>(MeasuredMedian());
  bool any = false;
  for (int at : Those(State::kCarries)) {
    Lane& lane = lanes_[static_cast<size_t>(at)];
    if (!Lame(lane, floor)) {
      lane.lame_for_ns = 0;
      lane.lame_count = 0;
      continue;
    }
    any = true;
    lane.state = State::kLame;
    lane.lame_for_ns = lane.lame_for_ns == 0 ? kLameForNs : std::min(2 * lane.lame_for_ns, kLameForMaxNs);
    lane.lame_until_ns = now_ns + lane.lame_for_ns;
    ++lane.lame_count;
    if (lane.lame_count == kLameMove && dials_.left() > 0) {
      dials_.Take(1);
      orders_.push_back({LaneOrder::Kind::kMove, at});
    }
    if (lane.lame_count >= kLameMax) Drop(at);
  }
  return any;
}

bool LanePilot::TryLame(int64_t now_ns) {
  bool any = false;
  for (int at : Those(State::kLame)) {
    if (now_ns < lanes_[static_cast<size_t>(at)].lame_until_ns) continue;
    state(at) = State::kCarries;
    any = true;
  }
  return any;
}

// Every second of the slowest: those that share a path look alike, and one of them is to stay. Of equal ones the last:
// whoever wakes a lane begins with the first.
LanePilot::Lanes LanePilot::LanesToPause(size_t count) const {
  Lanes candidates = Those(State::kCarries);
  std::reverse(candidates.begin(), candidates.end());
  std::stable_sort(candidates.begin(), candidates.end(), [this](int a, int b) {
    return lanes_[static_cast<size_t>(a)].measured < lanes_[static_cast<size_t>(b)].measured;
  });
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                  [this](int lane) { return lanes_[static_cast<size_t>(lane)].needed; }),
                   candidates.end());
  Lanes chosen;
  for (size_t i = 0; i < candidates.size() && chosen.size() < count; i += 2) chosen.push_back(candidates[i]);
  return chosen;
}

}  // namespace tcpx
