#include "net_socket/send/lane_pilot.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tcpx {
namespace {

// Tried at once, at the least.
constexpr int kExploreMin = 4;
constexpr int kVainMax = 3;
// Single lanes that were tried in vain, one after the other.
constexpr int kThinVainMax = 3;
// What is lost when a lane is given up: this part of what it seemed to bring, between these parts of the total.
constexpr double kOwnPart = 0.7;
constexpr double kMissedMin = 0.02, kMissedMax = 0.03;
// What a try has to bring: half of what one more lane would if all were limited, between these parts.
constexpr double kGainMin = 0.05, kGainMax = 0.10;
// Of the noise (PastWindows), beyond which it explains neither a gain nor the loss of one window.
constexpr double kGainNoise = 1.5, kSureNoise = 4;
// Within it so many windows in a row say that those that thinning paused are missed.
constexpr int kThinLooks = 3;
// Three windows below this part of the average: the path has changed.
constexpr double kFallen = 0.85;
constexpr int kLowWindowsMax = 3;
constexpr double kAverageGain = 0.25;
constexpr double kBelowBest = 0.9;
// So few lanes stay without a trial: what a trial costs them, the traffic of one or more, is more than they do.
constexpr size_t kFewLanes = 4;
// The best fades, by this part each window: what was there once need not come back.
constexpr double kBestFades = 0.002;

}  // namespace

LanePilot::LanePilot(const Settings& settings)
    : lanes_(static_cast<size_t>(settings.lanes_max)), random_(settings.seed) {
  for (int i = 0; i < settings.lanes; ++i) state(i) = State::kCarries;
}

void LanePilot::Backoff::InVain(int64_t now_ns, double jitter) {
  next_ns = now_ns + static_cast<int64_t>(static_cast<double>(wait_ns) * jitter);
  wait_ns = std::min(2 * wait_ns, kEveryMaxNs);
}

// 0.75 to 1.25.
double LanePilot::Jitter() {
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  return 0.75 + 0.5 * static_cast<double>(random_ >> 40) / static_cast<double>(1 << 24);
}

LanePilot::Lanes LanePilot::Those(State wanted) const {
  Lanes found;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (lanes_[i].state == wanted) found.push_back(static_cast<int>(i));
  }
  return found;
}

std::vector<LaneOrder> LanePilot::TakeOrders() { return std::exchange(orders_, {}); }

void LanePilot::Opened(int lane) {
  Lane& at = lanes_[static_cast<size_t>(lane)];
  if (at.state == State::kOpening) {
    at.state = State::kCarries;
    at.needed = false;
    at.lame_for_ns = at.lame_count = 0;
  } else if (at.state == State::kNone) {
    Drop(lane);  // Too late.
  } else if (at.state == State::kLame) {
    at.lame_until_ns = at.lame_for_ns = 0;  // It may go another way now.
  }
}

void LanePilot::Refused(int lane) {
  if (state(lane) == State::kOpening) state(lane) = State::kNone;
}

void LanePilot::Closed(int lane) {
  if (state(lane) == State::kClosing) state(lane) = State::kNone;
}

bool LanePilot::Step(int64_t now_ns, const Look& look) {
  const bool changed = Decide(now_ns, look);
  return KeepOne() || changed;
}

bool LanePilot::KeepOne() {
  if (carrying() > 0) return false;
  for (const State paused : {State::kLame, State::kPaused}) {
    for (int lane : Those(paused)) state(lane) = State::kCarries;
  }
  if (carrying() > 0) return true;
  // The last one was given up just now: nobody has carried that out yet.
  const auto last = std::find_if(orders_.rbegin(), orders_.rend(),
                                 [](const LaneOrder& order) { return order.kind == LaneOrder::Kind::kClose; });
  if (last == orders_.rend()) return false;
  state(last->lane) = State::kCarries;
  orders_.erase(std::next(last).base());
  return true;
}

bool LanePilot::Decide(int64_t now_ns, const Look& look) {
  const bool still = last_ns_ == 0 || now_ns - last_ns_ > kPauseNs;
  const bool whole = Measure(now_ns, look, still);
  if (still) return StoodStill(now_ns);
  if (trial_ == Trial::kExplore && opening_until_ns_ != 0) {
    // Lanes that are opened carry as they come: they are measured once the last one has.
    if (!Those(State::kOpening).empty() && now_ns < opening_until_ns_) return false;
    opening_until_ns_ = 0;
    StartWindow(now_ns + kSettleNs);
    return false;
  }
  if (!whole) return false;
  const double total = static_cast<double>(measured_) * kSecond / static_cast<double>(measured_ns_);
  const bool changed = Judge(now_ns, total);
  StartWindow(changed ? now_ns + kSettleNs : now_ns);
  return changed;
}

// True exactly when the window is over.
bool LanePilot::Measure(int64_t now_ns, const Look& look, bool still) {
  const int64_t since = now_ns - last_ns_;
  const bool counts = !still && last_ns_ >= window_ns_;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    // Another socket may have been told of less.
    const uint64_t moved = look.acked[i] - std::min(look.acked[i], lanes_[i].acked);
    lanes_[i].acked = look.acked[i];
    if (!counts) continue;
    lanes_[i].measured += moved;
    lanes_[i].dry_steps += look.dry != nullptr && (*look.dry)[i] ? 1 : 0;
    measured_ += moved;
  }
  if (last_ns_ != 0) dials_.Pass(since);
  last_ns_ = now_ns;
  may_open_ = look.may_open;
  if (!counts) return false;
  measured_ns_ += since;
  ++steps_;
  limited_steps_ += look.limited ? 1 : 0;
  return measured_ns_ >= kMeasureNs;
}

void LanePilot::StartWindow(int64_t now_ns) {
  window_ns_ = now_ns;
  measured_ns_ = 0;
  measured_ = 0;
  steps_ = limited_steps_ = 0;
  for (Lane& lane : lanes_) lane.measured = lane.dry_steps = 0;
}

bool LanePilot::StoodStill(int64_t now_ns) {
  StartWindow(now_ns + kSettleNs);
  if (thin_.next_ns == 0) thin_.next_ns = explore_.next_ns = now_ns + kFirstTrialNs;
  // What comes after the pause may be another kind of traffic.
  average_ = 0;
  if (trial_ == Trial::kNone) return false;
  (trial_ == Trial::kThin ? thin_ : explore_).InVain(now_ns, Jitter());
  Undo();
  return true;
}

bool LanePilot::Judge(int64_t now_ns, double total) {
  // One that is slow says nothing of the others.
  if (trial_ == Trial::kExplore) return PauseLame(now_ns) || JudgeExplore(now_ns, total);
  if (trial_ == Trial::kThin) return JudgeThin(now_ns, total);
  if (total <= 0) return TryLame(now_ns);  // Where nothing moves there is nothing to compare.
  const bool paused = PauseLame(now_ns);
  if (Watch(now_ns, total) || paused) return true;
  return TryLame(now_ns) || Begin(now_ns, total);
}

bool LanePilot::Begin(int64_t now_ns, double total) {
  if (explore_.Due(now_ns)) {
    if (Explore(now_ns, total)) return true;
    if (limited()) explore_.InVain(now_ns, Jitter());
  }
  if (!thin_.Due(now_ns)) return false;
  if (Thin(total)) return true;
  Settled(total);
  thin_.InVain(now_ns, Jitter());
  return false;
}

// What was paused is tried first: its path is another one than those of the others, or was.
bool LanePilot::Explore(int64_t now_ns, double total) {
  tried_.clear();
  for (int lane : Those(State::kPaused)) {
    state(lane) = State::kCarries;
    tried_.push_back(lane);
  }
  // Lanes that have just helped show that the network was the limit, whatever the lanes look like now.
  if (std::exchange(grew_, false) || limited()) {
    const int carrying = this->carrying();
    OpenMore(std::min(std::max(carrying, kExploreMin) - static_cast<int>(tried_.size()), may_open_));
    opening_until_ns_ = now_ns + kOpenWithinNs;
  }
  if (tried_.empty()) return false;
  trial_ = Trial::kExplore;
  base_ = std::max(total, past_.top());
  return true;
}

void LanePilot::OpenMore(int wanted) {
  // A lane or two would not show whether more help.
  if (dials_.left() < std::min(wanted, kExploreMin)) return;
  wanted = std::min(wanted, dials_.left());
  for (int lane : Those(State::kNone)) {
    if (wanted-- <= 0) return;
    state(lane) = State::kOpening;
    orders_.push_back({LaneOrder::Kind::kOpen, lane});
    tried_.push_back(lane);
    dials_.Take(1);
  }
}

bool LanePilot::JudgeExplore(int64_t now_ns, double total) {
  trial_ = Trial::kNone;
  int added = 0;
  for (int lane : tried_) added += carries(lane) ? 1 : 0;
  const double before = std::max(carrying() - added, 1);
  const double gain = std::max(std::clamp(0.5 / before, kGainMin, kGainMax), kGainNoise * past_.noise());
  if (added > 0 && total >= (1 + gain) * base_) {
    vain_ = thin_vain_ = 0;
    average_ = 0;
    past_.Anew(total);
    for (Lane& lane : lanes_) lane.needed = false;
    explore_.Reset(now_ns);
    explore_.next_ns = now_ns;
    thin_.Reset(now_ns);
    thin_.next_ns = now_ns;
    grew_ = true;
    return Begin(now_ns, total);
  }
  Undo();
  if (++vain_ < kVainMax) {
    explore_.next_ns = now_ns + kSettleNs;
  } else {
    vain_ = 0;
    explore_.InVain(now_ns, Jitter());
    if (thin_.wait_ns == thin_.first_ns) thin_.next_ns = now_ns;
  }
  return true;
}

bool LanePilot::Thin(double total) {
  const size_t carrying = static_cast<size_t>(this->carrying());
  if (carrying <= kFewLanes || thin_vain_ >= kThinVainMax) {
    thin_vain_ = 0;
    batch_ = 0;
    for (Lane& lane : lanes_) lane.needed = false;
    return false;
  }
  const size_t sixth = std::min(std::max<size_t>(carrying / 6, 1), carrying - kFewLanes);
  tried_ = LanesToPause(batch_ == 0 ? sixth : std::min(batch_, sixth));
  if (tried_.empty()) {
    thin_vain_ = kThinVainMax;
    return Thin(total);
  }
  base_ = total;
  thin_top_ = std::max({thin_top_, total, past_.top()});
  trial_ = Trial::kThin;
  for (int lane : tried_) state(lane) = State::kPaused;
  return true;
}

bool LanePilot::JudgeThin(int64_t now_ns, double total) {
  const double lanes = static_cast<double>(carrying()) + static_cast<double>(tried_.size());
  const double missed = std::clamp(kOwnPart / lanes, kMissedMin, kMissedMax);
  const double top = std::max(base_, thin_top_);
  if (total < (1 - missed) * top) {
    const bool sure = total < (1 - missed - kSureNoise * past_.noise()) * top;
    if (!sure && ++thin_looks_ < kThinLooks) return false;
    thin_looks_ = 0;
    trial_ = Trial::kNone;
    if (tried_.size() > 1) {
      batch_ = tried_.size() / 2;
    } else {
      lanes_[static_cast<size_t>(tried_[0])].needed = true;
      ++thin_vain_;
    }
    for (int lane : tried_) state(lane) = State::kCarries;
    thin_.next_ns = now_ns + kSettleNs;
    return true;
  }
  thin_looks_ = 0;
  trial_ = Trial::kNone;
  thin_vain_ = 0;
  for (int lane : tried_) Drop(lane);
  average_ = total;
  thin_.Reset(now_ns);
  thin_.next_ns = now_ns;
  (void)Begin(now_ns, total);  // Go on while it goes well.
  return true;
}

void LanePilot::Settled(double total) {
  thin_top_ = 0;
  found_ = {carrying(), total};
}

void LanePilot::Drop(int lane) {
  state(lane) = State::kClosing;
  orders_.push_back({LaneOrder::Kind::kClose, lane});
}

void LanePilot::Undo() {
  thin_looks_ = 0;
  const bool explored = trial_ != Trial::kThin;
  trial_ = Trial::kNone;
  if (explored) KeepOthers();
  for (int lane : tried_) {
    State& at = state(lane);
    if (!explored) {
      at = State::kCarries;
    } else if (at == State::kOpening) {
      at = State::kNone;  // It may still come, and is closed then.
    } else if (at == State::kCarries || at == State::kLame) {
      Drop(lane);
    }
  }
  opening_until_ns_ = 0;
}

bool LanePilot::Watch(int64_t now_ns, double total) {
  past_.Add(total);
  if (average_ == 0) average_ = total;
  low_windows_ = total < kFallen * average_ ? low_windows_ + 1 : 0;
  if (low_windows_ == 0) average_ += kAverageGain * (total - average_);
  best_ = std::max(average_, best_ * (1 - kBestFades));
  if (average_ < kBelowBest * best_) explore_.next_ns = std::min(explore_.next_ns, now_ns + kBelowBestEveryNs);
  if (low_windows_ < kLowWindowsMax) return false;
  low_windows_ = 0;
  past_.Anew(total);
  average_ = 0;
  thin_top_ = 0;
  for (Lane& lane : lanes_) lane.needed = false;
  explore_.Reset(now_ns);
  explore_.next_ns = now_ns;
  thin_.Reset(now_ns);
  return false;
}

}  // namespace tcpx
