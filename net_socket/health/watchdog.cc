#include "net_socket/health/watchdog.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "net_socket/health/lane_liveness.h"

namespace tcpx {

int64_t Watchdog::IntervalNs(const Options& options) {
  int64_t interval = options.peer_timeout_ns / (LaneLiveness::kSamplesMin + 1);
  if (options.stall_warn_ns > 0) interval = std::min(interval, options.stall_warn_ns / 4);
  return std::clamp(interval, 20 * kMillisecond, 10 * kSecond);
}

void Watchdog::JoinInLoop(std::shared_ptr<CommLink> link, const Options& options) {
  interval_ns_ = IntervalNs(options);
  if (links_.empty()) {
    timer_ = reactor_->RepeatInLoop(interval_ns_, [this] {
      RoundInLoop();
      return interval_ns_;
    });
  }
  links_.insert(std::move(link));
}

void Watchdog::LeaveInLoop(const std::shared_ptr<CommLink>& link) {
  links_.erase(link);
  if (links_.empty()) reactor_->CancelTimerInLoop(timer_);
}

void Watchdog::RoundInLoop() {
  const int64_t now = MonotonicNanos();
  for (const auto& link : links_) {
    link->With([now](Watched* comm) { comm->CheckProgress(now); });
  }
}

}  // namespace tcpx
