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

void Watchdog::JoinInLoop(Link<Subject> subject, const Options& options) {
  interval_ns_ = IntervalNs(options);
  if (subjects_.empty()) {
    timer_ = reactor_->RepeatInLoop(interval_ns_, [this] {
      RoundInLoop();
      return interval_ns_;
    });
  }
  subjects_.insert(std::move(subject));
}

void Watchdog::LeaveInLoop(const Link<Subject>& subject) {
  subjects_.erase(subject);
  if (subjects_.empty()) reactor_->CancelTimerInLoop(timer_);
}

void Watchdog::RoundInLoop() {
  const int64_t now = MonotonicNanos();
  for (const Link<Subject>& subject : subjects_) {
    subject.With([now](Subject* one) { one->CheckProgress(now); });
  }
}

}  // namespace tcpx
