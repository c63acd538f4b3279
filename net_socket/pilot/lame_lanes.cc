#include "net_socket/pilot/lame_lanes.h"

#include <algorithm>

#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

using State = PilotedLanes::State;

uint64_t MedianBrought(const MeasuredWindow& window, const PilotedLanes::Lanes& carrying) {
  if (carrying.size() < 2) return 0;
  std::vector<uint64_t> each;
  for (int lane : carrying) each.push_back(window.Brought(lane));
  const auto middle = each.begin() + static_cast<ptrdiff_t>(each.size() / 2);
  std::nth_element(each.begin(), middle, each.end());
  return *middle;
}

}  // namespace

bool LameLanes::Pause(int64_t now_ns, const MeasuredWindow& window, PilotedLanes* lanes) {
  const PilotedLanes::Lanes carrying = lanes->Those(State::kCarries);
  const double floor = tuning::kLame * static_cast<double>(MedianBrought(window, carrying));
  bool any = false;
  for (int lane : carrying) {
    // Slow, and not just given little.
    if (static_cast<double>(window.Brought(lane)) < floor && !window.WasDry(lane)) {
      any = true;
      PauseOne(now_ns, lane, lanes);
    } else {
      Forget(lane);
    }
  }
  return any;
}

void LameLanes::PauseOne(int64_t now_ns, int lane, PilotedLanes* lanes) {
  Lane& at = lanes_[static_cast<size_t>(lane)];
  lanes->Set(lane, State::kLame);
  at.for_ns = at.for_ns == 0 ? tuning::kLameForNs : std::min(2 * at.for_ns, tuning::kLameForMaxNs);
  at.until_ns = now_ns + at.for_ns;
  ++at.count;
  if (at.count == tuning::kLameMove) lanes->Move(lane);
  if (at.count >= tuning::kLameMax) lanes->Drop(lane);
}

bool LameLanes::TryAgain(int64_t now_ns, PilotedLanes* lanes) const {
  bool any = false;
  for (int lane : lanes->Those(State::kLame)) {
    if (now_ns < lanes_[static_cast<size_t>(lane)].until_ns) continue;
    lanes->Set(lane, State::kCarries);
    any = true;
  }
  return any;
}

void LameLanes::Moved(int lane) {
  Lane& at = lanes_[static_cast<size_t>(lane)];
  at.until_ns = at.for_ns = 0;
}

}  // namespace tcpx
