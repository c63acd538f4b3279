#include "net_socket/pilot/past_windows.h"

#include <cmath>

namespace tcpx {

bool PastWindows::Add(double total) {
  if (last_ > 0) changes_[changes_seen_++ % kCount] = std::abs(total - last_) / std::max(total, last_);
  last_ = totals_[seen_++ % kCount] = total;
  if (average_ == 0) average_ = total;
  low_ = total < tuning::kFallen * average_ ? low_ + 1 : 0;
  high_ = total > tuning::kRisen * average_ ? high_ + 1 : 0;
  if (low_ + high_ == 0) average_ += tuning::kAverageGain * (total - average_);
  best_ = std::max(average_, best_ * (1 - tuning::kBestFades));
  rose_ = high_ >= tuning::kLowLooksMax;
  if (!rose_ && low_ < tuning::kLowLooksMax) return false;
  low_ = high_ = 0;
  Anew(total);
  return !rose_;
}

void PastWindows::Anew(double total) {
  totals_.fill(total);
  last_ = average_ = 0;
}

double PastWindows::noise() const {
  if (changes_seen_ < kCount / 2) return 0;
  auto sorted = changes_;
  const size_t known = std::min(changes_seen_, kCount);
  std::nth_element(sorted.begin(), sorted.begin() + known / 2, sorted.begin() + known);
  return std::min(sorted[known / 2], tuning::kNoiseMax);
}

}  // namespace tcpx
