#include "net_socket/send/lane_thinner.h"

#include <algorithm>

namespace tcpx {
namespace {

// A lane may be missed that brought less than this part of the total: of lanes that share one path each seems to bring
// its part, and without it the others take it.
constexpr double kMissed = 0.05;
// What all lanes must bring more than those that carry.
constexpr double kGain = 0.05;
// Three windows below this part of the average: the path has changed.
constexpr double kFallen = 0.85;
constexpr int kLowWindowsMax = 3;
constexpr double kAverageGain = 0.25;

}  // namespace

void LaneThinner::Backoff::InVain(int64_t now_ns) {
  next_ns = now_ns + wait_ns;
  wait_ns = std::min(2 * wait_ns, kEveryMaxNs);
}

int LaneThinner::carrying() const { return static_cast<int>(std::count(carries_.begin(), carries_.end(), true)); }

bool LaneThinner::Step(int64_t now_ns, const Look& look) {
  const int64_t since = now_ns - last_ns_;
  const bool still = last_ns_ == 0 || since > kPauseNs;
  uint64_t moved = 0;
  if (!still) {
    // Another socket may have been told of less.
    for (size_t i = 0; i < acked_.size(); ++i) moved += look.acked[i] - std::min(look.acked[i], acked_[i]);
  }
  last_ns_ = now_ns;
  acked_ = look.acked;
  if (still) return StoodStill(now_ns);
  if (now_ns - since < window_ns_) return false;
  measured_ += moved;
  measured_ns_ += since;
  if (measured_ns_ < kMeasureNs) return false;
  const double total = static_cast<double>(measured_) * kSecond / static_cast<double>(measured_ns_);
  const bool changed = Judge(now_ns, total);
  StartWindow(changed ? now_ns + kSettleNs : now_ns);
  return changed;
}

void LaneThinner::StartWindow(int64_t now_ns) {
  window_ns_ = now_ns;
  measured_ns_ = 0;
  measured_ = 0;
}

bool LaneThinner::StoodStill(int64_t now_ns) {
  StartWindow(now_ns + kSettleNs);
  if (thin_.next_ns == 0) thin_.next_ns = grow_.next_ns = now_ns + kFirstTrialNs;
  // What comes after the pause may be another kind of traffic.
  average_ = 0;
  if (trial_ == Trial::kNone) return false;
  (trial_ == Trial::kThin ? thin_ : grow_).InVain(now_ns);
  return Undo();
}

bool LaneThinner::Judge(int64_t now_ns, double total) {
  if (trial_ == Trial::kThin) return JudgeThin(now_ns, total);
  if (trial_ == Trial::kGrow) return JudgeGrow(now_ns, total);
  if (FellFor3(total)) {
    TakeAll(now_ns);
    return true;
  }
  return Begin(now_ns, total);
}

// Where nothing moves there is nothing to compare.
bool LaneThinner::Begin(int64_t now_ns, double total) {
  if (total <= 0) return false;
  const size_t carrying = static_cast<size_t>(this->carrying());
  before_ = carries_;
  base_ = total;
  if (carrying < carries_.size() && grow_.Due(now_ns)) {
    trial_ = Trial::kGrow;
    carries_.assign(carries_.size(), true);
    return true;
  }
  if (carrying == 1 || !thin_.Due(now_ns)) return false;
  if (carrying == carries_.size()) all_total_ = total;
  trial_ = Trial::kThin;
  carries_[LaneToPause()] = false;
  return true;
}

bool LaneThinner::JudgeThin(int64_t now_ns, double total) {
  trial_ = Trial::kNone;
  if (total < (1 - kMissed) * std::max(base_, all_total_)) {
    thin_.InVain(now_ns);
    return Undo();
  }
  average_ = total;
  grow_.Reset(now_ns);
  return Begin(now_ns, total);  // Go on while it goes well.
}

bool LaneThinner::JudgeGrow(int64_t now_ns, double total) {
  all_total_ = total;
  if (total < (1 + kGain) * base_) {
    grow_.InVain(now_ns);
    return Undo();
  }
  trial_ = Trial::kNone;
  average_ = total;
  thin_.Reset(now_ns);
  return false;
}

bool LaneThinner::Undo() {
  trial_ = Trial::kNone;
  carries_ = before_;
  return true;
}

bool LaneThinner::FellFor3(double total) {
  if (average_ == 0) average_ = total;
  low_windows_ = total < kFallen * average_ ? low_windows_ + 1 : 0;
  if (low_windows_ == 0) average_ += kAverageGain * (total - average_);
  if (low_windows_ < kLowWindowsMax) return false;
  low_windows_ = 0;
  average_ = 0;
  return carrying() < static_cast<int>(carries_.size());
}

void LaneThinner::TakeAll(int64_t now_ns) {
  carries_.assign(carries_.size(), true);
  thin_.Reset(now_ns);
}

// Another one than the last time, the last of them first: whoever wakes a lane begins with the first.
size_t LaneThinner::LaneToPause() {
  for (size_t i = 0; i < carries_.size(); ++i) {
    paused_last_ = (paused_last_ + carries_.size() - 1) % carries_.size();
    if (carries_[paused_last_]) break;
  }
  return paused_last_;
}

}  // namespace tcpx
