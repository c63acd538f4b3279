#include "net_socket/pilot/measured_window.h"

#include <cmath>
#include <utility>

namespace tcpx {

void MeasuredWindow::Start(int64_t from_ns) {
  from_ns_ = from_ns;
  measured_ns_ = 0;
  brought_ = 0;
  others_ = 0;
  steps_ = limited_steps_ = 0;
  for (Lane& lane : lanes_) lane.brought = 0, lane.dry_steps = 0;
}

MeasuredWindow::Progress MeasuredWindow::Measure(int64_t now_ns, const LanePolicy::Look& look) {
  const int64_t since = now_ns - last_ns_;
  const bool still = last_ns_ == 0 || since > tuning::kStillNs;
  const bool counts = !still && last_ns_ >= from_ns_;
  const uint64_t before = brought_;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    // Another socket may have heard of less.
    const uint64_t moved = look.acked[i] - std::min(look.acked[i], lanes_[i].acked);
    lanes_[i].acked = look.acked[i];
    if (!counts) continue;
    lanes_[i].brought += moved;
    lanes_[i].dry_steps += look.dry != nullptr && (*look.dry)[i] ? 1 : 0;
    brought_ += moved;
  }
  last_ns_ = now_ns;
  const uint64_t all = look.all - std::exchange(all_, look.all);
  if (counts && look.all != 0) others_ += static_cast<int64_t>(all - (brought_ - before));
  if (still) return Progress::kStill;
  if (!counts) return Progress::kMeasures;
  measured_ns_ += since;
  ++steps_;
  limited_steps_ += look.limited ? 1 : 0;
  return measured_ns_ >= tuning::kMeasureNs ? Progress::kWhole : Progress::kMeasures;
}

PastWindows::Change PastWindows::Add(double total, int looks) {
  if (last_ > 0) changes_[changes_seen_++ % kCount] = std::abs(total - last_) / std::max(total, last_);
  last_ = totals_[seen_++ % kCount] = total;
  if (average_ == 0) average_ = total;
  low_ = total < tuning::kFallen * average_ ? low_ + 1 : 0;
  high_ = total > tuning::kRisen * average_ ? high_ + 1 : 0;
  if (low_ + high_ == 0) average_ += tuning::kAverageGain * (total - average_);
  best_ = std::max(average_, best_ * (1 - tuning::kBestFades));
  if (std::max(low_, high_) < looks) return Change::kNone;
  const Change change = low_ > 0 ? Change::kFell : Change::kRose;
  low_ = high_ = 0;
  Anew(total);
  return change;
}

double PastWindows::noise() const {
  if (changes_seen_ < kCount / 2) return 0;
  const auto end = changes_.begin() + static_cast<ptrdiff_t>(std::min(changes_seen_, kCount));
  return std::min(MedianOf(std::vector<double>(changes_.begin(), end)), tuning::kNoiseMax);
}

}  // namespace tcpx
