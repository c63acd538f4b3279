#include "net_socket/send/lane_rates.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/clock.h"
#include "net_socket/pilot/lane_pilot.h"

namespace tcpx {
namespace {

std::unique_ptr<LanePolicy> MakePolicy(const LaneRates::Settings& settings) {
  if (settings.shuffled) return std::make_unique<LaneShuffle>(settings.lanes);
  if (!settings.has_pilot || settings.lanes.lanes_max < 2) return nullptr;
  return std::make_unique<LanePilot>(settings.lanes);
}

}  // namespace

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

LaneRates::LaneRates(Settings settings)
    : settings_(std::move(settings)),
      count_(settings_.lanes.lanes_max),
      lanes_(new Lane[count_]),
      policy_(MakePolicy(settings_)),
      acked_(static_cast<size_t>(count_)),
      dry_(static_cast<size_t>(count_)),
      peer_limited_us_(static_cast<size_t>(count_)),
      round_trips_(static_cast<size_t>(count_)) {
  for (int i = 0; i < settings_.lanes.lanes; ++i) lanes_[i].carries = true;
}

double LaneRates::Share(int lane) const {
  int64_t sum = 0, least = 0;
  int carrying = 0, unknown = 0;
  for (int i = 0; i < count_; ++i) {
    if (!Carries(i)) continue;
    const int64_t rate = Get(i);
    if (rate != 0 && (least == 0 || rate < least)) least = rate;
    unknown += rate == 0 ? 1 : 0;
    sum += rate;
    ++carrying;
  }
  if (carrying == 0) return 1;
  if (sum == 0 || (unknown > 0 && !piloted())) return 1.0 / carrying;
  const int64_t own = Get(lane);
  return static_cast<double>(own == 0 ? least : own) / static_cast<double>(sum + unknown * least);
}

int64_t LaneRates::Held() const {
  int64_t sum = 0;
  for (int i = 0; i < count_; ++i) sum += lanes_[i].held;
  return sum;
}

void LaneRates::Looked(int lane, int64_t now_ns, const Seen& seen) {
  Lane& at = lanes_[lane];
  at.acked = seen.acked;
  at.held = seen.held;
  at.peer_limited_us = seen.peer_limited_us;
  at.full = seen.full;
  at.round_trip_us = seen.round_trips.now_us;
  at.least_us = seen.round_trips.least_us;
  if (policy_ != nullptr && now_ns >= next_step_ns_) Step(now_ns);
}

bool LaneRates::Limited(int64_t now_ns) {
  int carrying = 0, full = 0;
  for (int i = 0; i < count_; ++i) {
    if (!Carries(i)) continue;
    ++carrying;
    full += lanes_[i].full ? 1 : 0;
  }
  if (now_ns - stepped_ns_ >= tuning::kPeerEveryNs) {
    int64_t shut_us = 0;
    for (int i = 0; i < count_; ++i) {
      const int64_t now_us = lanes_[i].peer_limited_us;
      shut_us += std::max<int64_t>(now_us - std::exchange(peer_limited_us_[static_cast<size_t>(i)], now_us), 0);
    }
    peer_limits_ = 2 * shut_us * kMicrosecond > carrying * (now_ns - stepped_ns_);
    stepped_ns_ = now_ns;
  }
  return !peer_limits_ && 4 * full >= 3 * carrying;
}

void LaneRates::Step(int64_t now_ns) {
  if (!mutex_.try_lock()) return;
  MutexLock lock(mutex_, std::adopt_lock);
  if (now_ns < next_step_ns_) return;
  next_step_ns_ = now_ns + (settings_.shuffled ? tuning::kShuffleNs : tuning::kStepNs);
  for (int i = 0; i < count_; ++i) {
    acked_[static_cast<size_t>(i)] = lanes_[i].acked;
    round_trips_[static_cast<size_t>(i)] = {lanes_[i].round_trip_us, lanes_[i].least_us};
    dry_[static_cast<size_t>(i)] = lanes_[i].held <= 0;
  }
  const uint64_t brought = std::accumulate(acked_.begin(), acked_.end(), uint64_t{0});
  // The figures of another socket may be lower.
  const uint64_t more = std::max(brought, brought_) - std::exchange(brought_, brought);
  const LanePolicy::Look look{acked_, Limited(now_ns), settings_.may_open(),
                              &dry_,  &round_trips_,   settings_.brought(more)};
  const bool changed = policy_->Step(now_ns, look);
  if (changed) Publish();
  const int found = policy_->found().lanes;
  if (changed || found != std::exchange(found_, found)) settings_.ordered();
}

void LaneRates::Publish() {
  for (int i = 0; i < count_; ++i) lanes_[i].carries = policy_->carries(i);
}

void LaneRates::Opened(int lane) {
  MutexLock lock(mutex_);
  if (policy_ == nullptr) return;
  lanes_[lane].least_us = 0;  // It was that of an earlier socket.
  policy_->Opened(lane);
  Publish();
  settings_.ordered();
}

void LaneRates::Closed(int lane) {
  MutexLock lock(mutex_);
  lanes_[lane].held = 0;
  if (policy_ != nullptr) policy_->Closed(lane);
}

}  // namespace tcpx
