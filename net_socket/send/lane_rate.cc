#include "net_socket/send/lane_rate.h"

#include "common/clock.h"

namespace tcpx {

void LaneRate::Sample(int64_t now_ns, uint64_t sent, int64_t held, bool continuous) {
  const uint64_t acked = sent - std::min(static_cast<uint64_t>(held), sent);
  const bool busy = held > 0;
  span_busy_ &= busy;
  // What was lost with a socket is sent again: fewer bytes count as acknowledged than before.
  const bool back = acked < last_acked_;
  if (last_ns_ == 0 || back || (now_ns - last_ns_ > tuning::kLaneIdleNs && !continuous)) {
    StartSpan(now_ns, acked, busy);
  } else if (acked != last_acked_ && now_ns - span_ns_ >= (rate_ == 0 ? tuning::kFirstSpanMinNs : tuning::kSpanMinNs)) {
    EndSpan(now_ns, acked, busy);
  }
  last_ns_ = now_ns;
  last_acked_ = acked;
}

void LaneRate::StartSpan(int64_t now_ns, uint64_t acked, bool busy) {
  span_ns_ = now_ns;
  span_acked_ = acked;
  span_busy_ = busy;
}

void LaneRate::EndSpan(int64_t now_ns, uint64_t acked, bool busy) {
  const double bytes = static_cast<double>(acked - span_acked_);
  const int64_t seen = static_cast<int64_t>(bytes * kSecond / static_cast<double>(now_ns - span_ns_));
  // A lane that ran dry in between is at least as fast as what was seen.
  rate_ = rate_ == 0 || !span_busy_ ? std::max(rate_, seen) : rate_ + (seen - rate_) / 2;
  StartSpan(now_ns, acked, busy);
}

int64_t LaneRate::Within(int64_t ns) const {
  if (rate_ == 0) return tuning::kUnknownChunks * held_min_;
  return static_cast<int64_t>(static_cast<double>(rate_) * static_cast<double>(ns) / kSecond);
}

int64_t LaneRate::RetryAfterNs(int64_t held, int64_t bound) const {
  if (rate_ == 0) return tuning::kPullRetryMinNs;
  const double excess = static_cast<double>(held - bound + 1);
  return std::clamp(static_cast<int64_t>(excess * kSecond / static_cast<double>(rate_)), tuning::kPullRetryMinNs,
                    tuning::kPullRetryMaxNs);
}

}  // namespace tcpx
