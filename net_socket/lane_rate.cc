#include "net_socket/lane_rate.h"

#include <algorithm>

#include "common/clock.h"

namespace tcpx {
namespace {

// Samples closer than this are mostly noise; after a longer pause the lane was idle in between.
constexpr int64_t kSampleMinNs = 500 * kMicrosecond;
constexpr int64_t kSampleMaxNs = 50 * kMillisecond;
// Held before the rate is known, in units of the least amount.
constexpr int64_t kUnknownChunks = 4;
constexpr int64_t kRetryMinNs = 200 * kMicrosecond;
constexpr int64_t kRetryMaxNs = 2 * kMillisecond;

}  // namespace

void LaneRate::Sample(int64_t now_ns, uint64_t sent, int64_t held) {
  const int64_t elapsed = now_ns - last_ns_;
  if (elapsed < kSampleMinNs) return;
  const uint64_t acked = sent - static_cast<uint64_t>(held);
  if (elapsed < kSampleMaxNs && acked > last_acked_) {
    const int64_t seen = static_cast<int64_t>(static_cast<double>(acked - last_acked_) * kSecond / elapsed);
    // A lane that ran dry in between is at least as fast as what was seen.
    const bool busy = held > 0 && last_held_ > 0;
    rate_ = rate_ == 0 || !busy ? std::max(rate_, seen) : rate_ + (seen - rate_) / 4;
  }
  last_ns_ = now_ns;
  last_held_ = held;
  last_acked_ = acked;
}

int64_t LaneRate::held_max() const {
  if (rate_ == 0) return kUnknownChunks * held_min_;
  const double drain_s = static_cast<double>(kDrainNs + 2 * min_rtt_ns_) / kSecond;
  return std::max(held_min_, static_cast<int64_t>(static_cast<double>(rate_) * drain_s));
}

int64_t LaneRate::RetryAfterNs(int64_t held) const {
  if (rate_ == 0) return kRetryMinNs;
  const double excess = static_cast<double>(held - held_max() + 1);
  return std::clamp(static_cast<int64_t>(excess * kSecond / static_cast<double>(rate_)), kRetryMinNs, kRetryMaxNs);
}

double LaneRates::Share(int lane) const {
  int64_t sum = 0;
  for (int i = 0; i < lanes_; ++i) {
    const int64_t rate = Get(i);
    if (rate == 0) return 1.0 / lanes_;
    sum += rate;
  }
  return static_cast<double>(Get(lane)) / static_cast<double>(sum);
}

}  // namespace tcpx
