#include "net_socket/send/lane_rates.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/clock.h"
#include "net_socket/pilot/lane_pilot.h"
#include "net_socket/send/tuning.h"

namespace tcpx {

std::unique_ptr<LanePolicy> LaneRates::MakePolicy(const Settings& settings) {
  if (settings.shuffled) return std::make_unique<LaneShuffle>(settings.lanes);
  if (!settings.has_pilot || settings.lanes.lanes_max < 2) return nullptr;
  return std::make_unique<LanePilot>(settings.lanes);
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
  for (int i = 0; i < settings_.lanes.lanes; ++i) lanes_[i].carries.store(true, std::memory_order_relaxed);
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
  for (int i = 0; i < count_; ++i) sum += lanes_[i].held.load(std::memory_order_relaxed);
  return sum;
}

void LaneRates::Looked(int lane, int64_t now_ns, const Seen& seen) {
  lanes_[lane].acked.store(seen.acked, std::memory_order_relaxed);
  lanes_[lane].held.store(seen.held, std::memory_order_relaxed);
  lanes_[lane].peer_limited_us.store(seen.peer_limited_us, std::memory_order_relaxed);
  lanes_[lane].full.store(seen.full, std::memory_order_relaxed);
  lanes_[lane].round_trip_us.store(seen.round_trips.now_us, std::memory_order_relaxed);
  lanes_[lane].least_us.store(seen.round_trips.least_us, std::memory_order_relaxed);
  if (policy_ != nullptr && now_ns >= next_step_ns_.load(std::memory_order_relaxed)) Step(now_ns);
}

bool LaneRates::Limited(int64_t now_ns) {
  int carrying = 0, full = 0;
  for (int i = 0; i < count_; ++i) {
    if (!Carries(i)) continue;
    ++carrying;
    full += lanes_[i].full.load(std::memory_order_relaxed) ? 1 : 0;
  }
  if (now_ns - stepped_ns_ >= tuning::kPeerEveryNs) {
    int64_t shut_us = 0;
    for (int i = 0; i < count_; ++i) {
      const int64_t now_us = lanes_[i].peer_limited_us.load(std::memory_order_relaxed);
      shut_us += std::max<int64_t>(now_us - std::exchange(peer_limited_us_[static_cast<size_t>(i)], now_us), 0);
    }
    peer_limits_ = 2 * shut_us * kMicrosecond > carrying * (now_ns - stepped_ns_) ? 1 : 0;
    stepped_ns_ = now_ns;
  }
  return peer_limits_ == 0 && 4 * full >= 3 * carrying;
}

void LaneRates::Step(int64_t now_ns) {
  if (!mutex_.try_lock()) return;
  MutexLock lock(mutex_, std::adopt_lock);
  if (now_ns < next_step_ns_.load(std::memory_order_relaxed)) return;
  next_step_ns_.store(now_ns + (settings_.shuffled ? tuning::kShuffleNs : tuning::kStepNs), std::memory_order_relaxed);
  for (int i = 0; i < count_; ++i) {
    acked_[static_cast<size_t>(i)] = lanes_[i].acked.load(std::memory_order_relaxed);
    round_trips_[static_cast<size_t>(i)] = {lanes_[i].round_trip_us.load(std::memory_order_relaxed),
                                            lanes_[i].least_us.load(std::memory_order_relaxed)};
    dry_[static_cast<size_t>(i)] = lanes_[i].held.load(std::memory_order_relaxed) <= 0;
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
  for (int i = 0; i < count_; ++i) lanes_[i].carries.store(policy_->carries(i), std::memory_order_relaxed);
}

void LaneRates::Opened(int lane) {
  MutexLock lock(mutex_);
  if (policy_ == nullptr) return;
  lanes_[lane].least_us.store(0, std::memory_order_relaxed);  // It was that of an earlier socket.
  policy_->Opened(lane);
  Publish();
  settings_.ordered();
}

void LaneRates::Closed(int lane) {
  MutexLock lock(mutex_);
  lanes_[lane].held.store(0, std::memory_order_relaxed);
  if (policy_ != nullptr) policy_->Closed(lane);
}

}  // namespace tcpx
