#include "net_socket/pilot/trials.h"

#include "common/clock.h"
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

void SpreadTrial::See(const MeasuredWindow& window, const PilotedLanes& lanes) {
  limited_ = limited_ || window.limited();
  for (int lane : lanes.Those(State::kCarries)) {
    Known& known = known_[static_cast<size_t>(lane)];
    known.looks = std::min(known.looks + 1, tuning::kSpreadKnownLooks);
    const double part = 1.0 / known.looks;
    known.brought += part * (static_cast<double>(window.Brought(lane)) - known.brought);
    known.dry += part * ((window.WasDry(lane) ? 1 : 0) - known.dry);
  }
}

int SpreadTrial::Crowded(const PilotedLanes& lanes) const {
  std::vector<double> brought;
  int slowest = -1;
  bool any_dry = false;
  for (int lane : lanes.Those(State::kCarries)) {
    const Known& known = known_[static_cast<size_t>(lane)];
    brought.push_back(known.brought);
    const bool dry = 2 * known.dry > 1;
    any_dry = any_dry || dry;
    if (dry && !limited_) continue;
    if (slowest < 0 || known.brought < known_[static_cast<size_t>(slowest)].brought) slowest = lane;
  }
  if (slowest < 0 || limited_) return slowest;
  if (!any_dry) return -1;
  const double median = MedianOf(std::move(brought));
  return tuning::kCrowded * known_[static_cast<size_t>(slowest)].brought < median ? slowest : -1;
}

bool SpreadTrial::Over(int64_t now_ns) const {
  return vain_ >= tuning::kSpreadVainMax || (first_ns_ != 0 && now_ns - first_ns_ > tuning::kSpreadForNs);
}

// Trials that are not over find out by themselves.
void SpreadTrial::PathChanged(int64_t now_ns) {
  if (!Over(now_ns)) return;
  changed_ = true;
  limited_ = false;
}

bool SpreadTrial::Begin(int64_t now_ns, double base, PilotedLanes* lanes) {
  if (changed_ && now_ns - first_ns_ >= tuning::kSpreadAgainNs) {
    changed_ = false;
    first_ns_ = 0;
    vain_ = 0;
  }
  // A trial costs no large part of the traffic, and of each lane that carries it is known what it brings.
  const PilotedLanes::Lanes carrying = lanes->Those(State::kCarries);
  const auto known = [this](int lane) { return known_[static_cast<size_t>(lane)].looks >= tuning::kSpreadKnownLooks; };
  if (carrying.size() < tuning::kFewLanes || !std::all_of(carrying.begin(), carrying.end(), known)) return false;
  if (first_ns_ == 0) first_ns_ = now_ns;
  if (Over(now_ns)) return false;
  old_ = Crowded(*lanes);
  if (old_ < 0) return false;
  const PilotedLanes::Lanes opened = lanes->Open(1, 1);
  if (opened.empty()) return false;
  new_ = opened[0];
  base_ = base;
  opening_until_ns_ = now_ns + tuning::kOpenWithinNs;
  opened_ns_ = 0;
  looks_ = 0;
  total_ = new_brought_ = 0;
  return true;
}

bool SpreadTrial::Awaits(int64_t now_ns, const LanePolicy::Look& look, const PilotedLanes& lanes) {
  if (opening_until_ns_ == 0) return false;
  if (lanes.state(new_) == State::kOpening) return now_ns < opening_until_ns_;
  if (opened_ns_ == 0) opened_ns_ = now_ns;
  const int64_t round_trip_us = look.round_trips == nullptr ? 0 : (*look.round_trips)[static_cast<size_t>(new_)].now_us;
  const int64_t starts_ns = tuning::kSlowStartRounds * round_trip_us * kMicrosecond;
  // kSettleNs of it are over before the first look begins, too.
  return now_ns - opened_ns_ < std::min(starts_ns, tuning::kOpenWithinNs) - tuning::kSettleNs;
}

// The number of lanes stays: with one more each of them would bring less where the application has no more to send.
bool SpreadTrial::Came(PilotedLanes* lanes) {
  if (std::exchange(opening_until_ns_, 0) == 0) return false;
  if (lanes->carries(old_) && lanes->carries(new_)) lanes->Set(old_, State::kPaused);
  return true;
}

bool SpreadTrial::Judge(const MeasuredWindow& window, double noise, PilotedLanes* lanes) {
  total_ += window.total();
  new_brought_ += static_cast<double>(window.Brought(new_));
  ++looks_;
  const double least = (1 - std::max(tuning::kMissedMin, tuning::kGainNoise * noise)) * base_;
  const bool missed = total_ < least * looks_ || !lanes->carries(new_) || lanes->state(old_) != State::kPaused;
  if (!missed && looks_ < tuning::kSpreadLooks) return false;
  if (missed || new_brought_ < tuning::kFaster * known_[static_cast<size_t>(old_)].brought * looks_) {
    ++vain_;
    Undo(lanes);
  } else {
    lanes->Drop(old_);
    vain_ = 0;
  }
  return true;
}

void SpreadTrial::Undo(PilotedLanes* lanes) {
  if (lanes->state(old_) == State::kPaused) lanes->Set(old_, State::kCarries);
  lanes->GiveBack(new_);
  opening_until_ns_ = 0;
}

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
