#include "net_socket/pilot/lane_pilot.h"

#include <algorithm>
#include <utility>

namespace tcpx {

// Connections that share a network share it evenly with lanes that are equally many, as in the beginning: it is not
// thinned below them. (bench/fabric: connections that are thinned to 4 where others have 8 lose up to a quarter.)
LanePilot::LanePilot(const Settings& settings)
    : LanePolicy(settings),
      piloted_(settings.piloted),
      window_(settings.lanes_max),
      lame_(settings.lanes_max),
      explore_(piloted_ ? tuning::kVainMax : 1),
      spread_(settings.lanes_max),
      thin_(settings.lanes_max, piloted_ ? std::max(static_cast<size_t>(settings.lanes), tuning::kFewLanes) : 1,
            piloted_ ? tuning::kThinVainMax : 1),
      explore_again_(tuning::kExploreEveryNs),
      same_queue_again_(tuning::kSameQueueNs, tuning::kSameQueueMaxNs),
      thin_again_(tuning::kThinEveryNs),
      random_(settings.seed) {}

double LanePilot::Jitter() {
  random_ = random_ * 6364136223846793005u + 1442695040888963407u;
  const double part = static_cast<double>(random_ >> 40) / static_cast<double>(1 << 24);
  return 1 - tuning::kJitter + 2 * tuning::kJitter * part;
}

void LanePilot::Opened(int lane) {
  const PilotedLanes::State before = lanes_.Opened(lane);
  if (before == PilotedLanes::State::kOpening) {
    thin_.Forget(lane);
    spread_.Forget(lane);
    lame_.Forget(lane);
  } else if (before == PilotedLanes::State::kLame) {
    lame_.Moved(lane);
    spread_.Forget(lane);
  }
}

bool LanePilot::Decide(int64_t now_ns, const Look& look) {
  const MeasuredWindow::Progress progress = window_.Measure(now_ns, look);
  lanes_.Pass(now_ns);
  may_open_ = look.may_open;
  explore_.See(look, lanes_);
  if (progress == MeasuredWindow::Progress::kStill) return WasStill(now_ns);
  if (trial_ == Trial::kExplore) {
    if (explore_.Awaits(now_ns, lanes_)) return false;
    if (explore_.Came()) {
      window_.Start(now_ns + tuning::kSettleNs);
      return false;
    }
    if (explore_.FoundSameQueue()) {
      window_.Start(now_ns + tuning::kSettleNs);
      return JudgeExplore(now_ns, 0);
    }
  }
  if (trial_ == Trial::kSpread) {
    if (spread_.Awaits(now_ns, look, lanes_)) return false;
    if (spread_.Came(&lanes_)) {
      window_.Start(now_ns + tuning::kSettleNs);
      return true;
    }
  }
  if (progress != MeasuredWindow::Progress::kWhole) return false;
  const bool changed = Judge(now_ns, window_.total());
  window_.Start(changed ? now_ns + tuning::kSettleNs : now_ns);
  return changed;
}

bool LanePilot::WasStill(int64_t now_ns) {
  window_.Start(now_ns + tuning::kSettleNs);
  if (!thin_again_.started()) {
    explore_again_.At(now_ns + tuning::kFirstTrialNs);
    thin_again_.At(now_ns + tuning::kFirstTrialNs);
  }
  past_.WasStill();
  const Trial broken_off = std::exchange(trial_, Trial::kNone);
  if (broken_off == Trial::kNone) return false;
  if (broken_off == Trial::kThin) {
    thin_again_.InVain(now_ns, Jitter());
    thin_.Undo(&lanes_);
  } else if (broken_off == Trial::kSpread) {
    PauseSpreading(now_ns);
    spread_.Undo(&lanes_);
  } else {
    PauseExploring(now_ns);
    explore_.Undo(&lanes_);
  }
  return true;
}

bool LanePilot::Judge(int64_t now_ns, double total) {
  // One that is slow says nothing of the others.
  if (trial_ == Trial::kExplore) return PauseLame(now_ns) || JudgeExplore(now_ns, total);
  if (trial_ == Trial::kSpread) return PauseLame(now_ns) || JudgeSpread(now_ns);
  if (trial_ == Trial::kThin) return JudgeThin(now_ns, total);
  if (total <= 0) return lame_.TryAgain(now_ns, &lanes_);  // Where nothing moves there is nothing to compare.
  const bool paused = PauseLame(now_ns);
  spread_.See(window_, lanes_);
  Watch(now_ns, total);
  return paused || lame_.TryAgain(now_ns, &lanes_) || Begin(now_ns, total);
}

bool LanePilot::Begin(int64_t now_ns, double total) {
  if (explore_again_.Due(now_ns) && (!same_queue_again_.started() || same_queue_again_.Due(now_ns))) {
    const double base = std::max(total, past_.top());
    if (explore_.Begin(now_ns, base, window_.others(), window_.limited(), may_open_, &lanes_)) {
      trial_ = Trial::kExplore;
      return true;
    }
    PauseExploring(now_ns);
  }
  // Few lanes are spread, rather than many that are thinned afterwards.
  return Thin(now_ns, total) || Spread(now_ns, total);
}

// Where others are the limit nobody sees what a lane brings.
bool LanePilot::Thin(int64_t now_ns, double total) {
  if (!thin_again_.Due(now_ns) || (piloted_ && !window_.limited())) return false;
  if (thin_.Begin(total, past_.top(), window_, &lanes_)) {
    trial_ = Trial::kThin;
    return true;
  }
  found_ = {carrying(), total};
  thin_again_.InVain(now_ns, Jitter());
  return false;
}

// Once the attempts to explore are over, for now, and did not find that all share one path.
bool LanePilot::Spread(int64_t now_ns, double total) {
  const bool same_queue = same_queue_again_.started() && !same_queue_again_.Due(now_ns);
  if (!piloted_ || explore_again_.fresh() || same_queue || now_ns < spread_again_ns_) return false;
  if (!spread_.Begin(now_ns, past_.average() > 0 ? past_.average() : total, &lanes_)) return false;
  trial_ = Trial::kSpread;
  return true;
}

bool LanePilot::JudgeSpread(int64_t now_ns) {
  if (!spread_.Judge(window_, past_.noise(), &lanes_)) return false;
  trial_ = Trial::kNone;
  PauseSpreading(now_ns);
  return true;
}

bool LanePilot::JudgeExplore(int64_t now_ns, double total) {
  using Verdict = ExploreTrial::Verdict;
  trial_ = Trial::kNone;
  const Verdict verdict = explore_.Judge(total, window_.others(), past_.noise(), &lanes_);
  if (verdict == Verdict::kHelps) {
    past_.Anew(total);
    pauses_ = 0;
    thin_.LanesChanged();
    for (Backoff* again : {&explore_again_, &same_queue_again_, &thin_again_}) again->RestartAt(now_ns);
    return Begin(now_ns, total);
  }
  if (verdict == Verdict::kInVain) {
    explore_again_.At(now_ns + tuning::kSettleNs);
    return true;
  }
  if (verdict == Verdict::kSameQueue) {
    same_queue_again_.InVain(now_ns, Jitter());
    same_queue_ns_ = now_ns;
  }
  PauseExploring(now_ns);
  if (thin_again_.fresh()) thin_again_.At(now_ns);
  return true;
}

bool LanePilot::JudgeThin(int64_t now_ns, double total) {
  const ThinTrial::Verdict verdict = thin_.Judge(total, past_.noise(), &lanes_);
  if (verdict == ThinTrial::Verdict::kLookAgain) return false;
  trial_ = Trial::kNone;
  if (verdict == ThinTrial::Verdict::kMissed) {
    thin_again_.At(now_ns + tuning::kSettleNs);
    return true;
  }
  past_.Thinned(total);
  thin_again_.RestartAt(now_ns);
  (void)Begin(now_ns, total);  // Go on while it goes well.
  return true;
}

void LanePilot::PauseExploring(int64_t now_ns) {
  explore_again_.InVain(now_ns, Jitter());
  if (!piloted_ || ++pauses_ <= tuning::kPausesMax) return;
  explore_again_.At(now_ns + static_cast<int64_t>(Jitter() * static_cast<double>(tuning::kExploreAgainNs)));
}

void LanePilot::Watch(int64_t now_ns, double total) {
  using Change = PastWindows::Change;
  const bool settled = pauses_ > tuning::kPausesMax;
  const Change change = past_.Add(total, settled ? tuning::kLowLooksSettled : tuning::kLowLooksMax);
  if (!settled && past_.below_best()) explore_again_.NoLaterThan(now_ns + tuning::kBelowBestEveryNs);
  // A connection that still explores finds out by itself where there is more.
  if (change == Change::kNone || (change == Change::kRose && !settled)) return;
  // Others have begun to explore, too: a connection that answers them each time never ends.
  const bool lately = now_ns - restarted_ns_ < tuning::kRestartEveryNs;
  if (lately && settled) return;
  if (!lately) pauses_ = settled ? tuning::kPausesMax - 1 : 0;
  restarted_ns_ = now_ns;
  thin_.PathChanged();
  spread_.PathChanged(now_ns);
  if (same_queue_again_.started()) same_queue_again_.NoLaterThan(same_queue_ns_ + tuning::kSameQueueNs);
  explore_again_.RestartAt(now_ns);
  thin_again_.RestartAt(now_ns + tuning::kThinEveryNs);
}

bool LaneShuffle::Step(int64_t, const Look&) {
  using Kind = LaneOrder::Kind;
  using State = PilotedLanes::State;
  const unsigned choice = random_() % 5;
  const Kind kind = choice == 0 ? Kind::kMove : choice < 3 ? Kind::kOpen : Kind::kClose;
  const PilotedLanes::Lanes those = lanes_.Those(kind == Kind::kOpen ? State::kNone : State::kCarries);
  if (those.empty()) return false;
  const int lane = those[random_() % those.size()];
  if (kind == Kind::kClose && lanes_.carrying() < 2) return false;
  lanes_.Order(kind, lane);
  return true;
}

}  // namespace tcpx
