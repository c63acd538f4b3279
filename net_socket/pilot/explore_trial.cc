#include "net_socket/pilot/explore_trial.h"

#include <algorithm>

#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

using State = PilotedLanes::State;
using Found = QueueProbe::Found;

// Lanes that wait between these two are in one queue, as far as that shows. The base is not subtracted: it is not known
// where others filled the queue from the start.
bool Alike(int64_t least_us, int64_t most_us) {
  return static_cast<double>(most_us) < tuning::kAlike * static_cast<double>(least_us);
}

}  // namespace

void QueueProbe::See(const LanePolicy::Look& look, const PilotedLanes& lanes) {
  if (look.round_trips == nullptr) return;
  latest_ = *look.round_trips;
  for (Opened& opened : opened_) {
    if (opened.least_us == 0 && lanes.carries(opened.lane)) {
      opened.least_us = latest_[static_cast<size_t>(opened.lane)].least_us;
    }
  }
  for (const LanePolicy::RoundTrips& lane : latest_) {
    if (lane.least_us > 0 && (base_us_ == 0 || lane.least_us < base_us_)) base_us_ = lane.least_us;
  }
}

void QueueProbe::Begin(const PilotedLanes& lanes, const PilotedLanes::Lanes& opened) {
  opened_.clear();
  median_us_ = 0;
  if (latest_.empty()) return;
  for (int lane : opened) opened_.push_back({lane, 0});
  std::vector<int64_t> round_trips;
  for (int lane : lanes.Those(State::kCarries)) {
    const int64_t now_us = latest_[static_cast<size_t>(lane)].now_us;
    if (now_us > 0) round_trips.push_back(now_us);
  }
  if (round_trips.empty()) return;
  std::sort(round_trips.begin(), round_trips.end());
  median_us_ = round_trips[round_trips.size() / 2];
  alike_ = Alike(round_trips.front(), round_trips.back());
}

Found QueueProbe::found() const {
  const int64_t queue_us = median_us_ - base_us_;
  if (base_us_ == 0 || queue_us < tuning::kQueueMinUs) return Found::kUnknown;
  int64_t least_us = 0, most_us = 0;
  for (const Opened& opened : opened_) {
    if (opened.least_us > 0 && (least_us == 0 || opened.least_us < least_us)) least_us = opened.least_us;
    most_us = std::max(most_us, opened.least_us);
  }
  if (least_us == 0) return Found::kUnknown;
  if (static_cast<double>(least_us - base_us_) < tuning::kEmptyPart * static_cast<double>(queue_us)) {
    return Found::kEmptyPath;
  }
  return alike_ && Alike(least_us, most_us) ? Found::kSameQueue : Found::kAnother;
}

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
  const auto tried = [this](int lane) { return std::find(tried_.begin(), tried_.end(), lane) != tried_.end(); };
  const PilotedLanes::Lanes carrying = lanes->Those(State::kCarries);
  // All that carried before may be lame by now: they go on, rather than nobody, when those that were tried go.
  if (std::all_of(carrying.begin(), carrying.end(), tried)) {
    for (int lane : lanes->Those(State::kLame)) {
      if (!tried(lane)) lanes->Set(lane, State::kCarries);
    }
  }
  for (int lane : tried_) lanes->GiveBack(lane);
  opening_until_ns_ = 0;
}

}  // namespace tcpx
