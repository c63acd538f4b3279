#include "net_socket/pilot/thin_trial.h"

#include <algorithm>
#include <utility>

#include "net_socket/pilot/tuning.h"

namespace tcpx {

using State = PilotedLanes::State;

bool ThinTrial::Begin(double total, double top, const MeasuredWindow& window, PilotedLanes* lanes) {
  const size_t carrying = static_cast<size_t>(lanes->carrying());
  tried_.clear();
  if (carrying > lanes_min_ && vain_ < vain_max_) {
    const size_t sixth = std::min(std::max<size_t>(carrying / tuning::kThinPart, 1), carrying - lanes_min_);
    tried_ = LanesToPause(batch_ == 0 ? sixth : std::min(batch_, sixth), window, *lanes);
  }
  if (tried_.empty()) {
    vain_ = 0;
    batch_ = 0;
    PathChanged();
    return false;
  }
  top_ = std::max({top_, total, top});
  lanes->Set(tried_, State::kPaused);
  return true;
}

ThinTrial::Verdict ThinTrial::Judge(double total, double noise, PilotedLanes* lanes) {
  const double count = static_cast<double>(lanes->carrying()) + static_cast<double>(tried_.size());
  const double missed = std::clamp(tuning::kOwnPart / count, tuning::kMissedMin, tuning::kMissedMax);
  if (total >= (1 - missed) * top_) {
    looks_ = vain_ = 0;
    for (int lane : tried_) lanes->Drop(lane);
    return Verdict::kNotMissed;
  }
  const bool sure = total < (1 - missed - tuning::kSureNoise * noise) * top_;
  if (!sure && ++looks_ < tuning::kThinLooks) return Verdict::kLookAgain;
  if (tried_.size() > 1) {
    batch_ = tried_.size() / 2;
  } else {
    needed_[static_cast<size_t>(tried_[0])] = true;
    ++vain_;
  }
  Undo(lanes);
  return Verdict::kMissed;
}

// Every second one of the slowest: those that share a path look alike, and one of them is to stay. Among equal ones the
// last: a thread that wakes lanes begins with the first.
PilotedLanes::Lanes ThinTrial::LanesToPause(size_t count, const MeasuredWindow& window,
                                            const PilotedLanes& lanes) const {
  PilotedLanes::Lanes candidates = lanes.Those(State::kCarries);
  std::reverse(candidates.begin(), candidates.end());
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](int a, int b) { return window.Brought(a) < window.Brought(b); });
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                  [this](int lane) { return needed_[static_cast<size_t>(lane)]; }),
                   candidates.end());
  PilotedLanes::Lanes chosen;
  for (size_t i = 0; i < candidates.size() && chosen.size() < count; i += 2) chosen.push_back(candidates[i]);
  return chosen;
}

bool LameLanes::Pause(int64_t now_ns, const MeasuredWindow& window, PilotedLanes* lanes) {
  const PilotedLanes::Lanes carrying = lanes->Those(State::kCarries);
  std::vector<uint64_t> brought;
  for (int lane : carrying) brought.push_back(window.Brought(lane));
  const double floor = brought.size() < 2 ? 0 : tuning::kLame * static_cast<double>(MedianOf(std::move(brought)));
  bool any = false;
  for (int lane : carrying) {
    // Slow, and not just given little.
    if (static_cast<double>(window.Brought(lane)) >= floor || window.WasDry(lane)) {
      Forget(lane);
      continue;
    }
    any = true;
    Lane& at = lanes_[static_cast<size_t>(lane)];
    lanes->Set(lane, State::kLame);
    at.for_ns = at.for_ns == 0 ? tuning::kLameForNs : std::min(2 * at.for_ns, tuning::kLameForMaxNs);
    at.until_ns = now_ns + at.for_ns;
    ++at.count;
    if (at.count == tuning::kLameMove) lanes->Move(lane);
    if (at.count >= tuning::kLameMax) lanes->Drop(lane);
  }
  return any;
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

}  // namespace tcpx
