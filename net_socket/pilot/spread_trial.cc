#include "net_socket/pilot/spread_trial.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {

using State = PilotedLanes::State;

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

}  // namespace tcpx
