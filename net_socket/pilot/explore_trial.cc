#include "net_socket/pilot/explore_trial.h"

#include <algorithm>
#include <utility>

#include "net_socket/pilot/tuning.h"

namespace tcpx {

using State = PilotedLanes::State;
using Found = QueueProbe::Found;

// What was paused is tried first: its path is another one than those of the others, or was.
bool ExploreTrial::Begin(int64_t now_ns, double base, double others, bool limited, int may_open, PilotedLanes* lanes) {
  tried_ = lanes->Those(State::kPaused);
  probe_.Begin(*lanes, {});
  lanes->Set(tried_, State::kCarries);
  opening_until_ns_ = 0;
  // Lanes that have just helped show that the network was the limit, whatever the lanes look like now.
  if (std::exchange(grew_, false) || limited) {
    const int carrying = lanes->carrying();
    const int wanted = std::max(carrying, tuning::kExploreMin) - static_cast<int>(tried_.size());
    // A lane or two would not show whether more help.
    const PilotedLanes::Lanes opened = lanes->Open(std::min(wanted, may_open), tuning::kExploreMin);
    probe_.Begin(*lanes, opened);
    tried_.insert(tried_.end(), opened.begin(), opened.end());
    opening_until_ns_ = now_ns + tuning::kOpenWithinNs;
  }
  base_ = base;
  others_ = others;
  return !tried_.empty();
}

bool ExploreTrial::Awaits(int64_t now_ns, const PilotedLanes& lanes) const {
  return now_ns < opening_until_ns_ && !lanes.Those(State::kOpening).empty();
}

bool ExploreTrial::Came() { return std::exchange(opening_until_ns_, 0) != 0; }

ExploreTrial::Verdict ExploreTrial::Judge(double total, double others, double noise, PilotedLanes* lanes) {
  const auto added = std::count_if(tried_.begin(), tried_.end(), [&](int lane) { return lanes->carries(lane); });
  const double before = static_cast<double>(std::max<int64_t>(lanes->carrying() - added, 1));
  const double gain =
      std::max(std::clamp(0.5 / before, tuning::kGainMin, tuning::kGainMax), tuning::kGainNoise * noise);
  const Found found = probe_.found();
  const bool gains =
      added > 0 && total >= (1 + gain) * base_ && others_ - others <= tuning::kTakenMax * (total - base_);
  // That queues differ may be by chance: it is to be found twice.
  const bool again = std::exchange(another_, gains && found == Found::kAnother);
  if (gains && (found == Found::kUnknown || found == Found::kEmptyPath || (another_ && again))) {
    vain_ = same_queue_ = 0;
    grew_ = true;
    return Verdict::kHelps;
  }
  Undo(lanes);
  if (found == Found::kSameQueue && ++same_queue_ >= tuning::kSameQueueMax) return Verdict::kSameQueue;
  if (++vain_ < vain_max_) return Verdict::kInVain;
  vain_ = 0;
  return Verdict::kLastInVain;
}

void ExploreTrial::Undo(PilotedLanes* lanes) {
  KeepOthers(lanes);
  for (int lane : tried_) {
    const State at = lanes->state(lane);
    if (at == State::kOpening) lanes->Set(lane, State::kNone);  // It may still come, and is closed then.
    if (at == State::kCarries || at == State::kLame) lanes->Drop(lane);
  }
  opening_until_ns_ = 0;
}

bool ExploreTrial::Tried(int lane) const { return std::find(tried_.begin(), tried_.end(), lane) != tried_.end(); }

// All that carried before may be lame by now: they go on, rather than nobody, when those that were tried go.
void ExploreTrial::KeepOthers(PilotedLanes* lanes) const {
  const PilotedLanes::Lanes carrying = lanes->Those(State::kCarries);
  if (!std::all_of(carrying.begin(), carrying.end(), [this](int lane) { return Tried(lane); })) return;
  for (int lane : lanes->Those(State::kLame)) {
    if (!Tried(lane)) lanes->Set(lane, State::kCarries);
  }
}

}  // namespace tcpx
