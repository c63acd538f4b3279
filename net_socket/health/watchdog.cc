#include "net_socket/health/watchdog.h"

#include <algorithm>
#include <utility>

#include "common/clock.h"
#include "net_socket/health/tuning.h"

namespace tcpx {

int64_t Watchdog::IntervalNs(const Options& options) {
  int64_t interval = options.peer_timeout_ns / (tuning::kSamplesMin + 1);
  if (options.stall_warn_ns > 0) interval = std::min(interval, options.stall_warn_ns / 4);
  return std::clamp(interval, 20 * kMillisecond, 10 * kSecond);
}

void Watchdog::JoinInLoop(std::shared_ptr<const Activity> activity, int64_t every_ns, Look look) {
  if (watched_.empty()) {
    reactor_->RepeatInLoop(every_ns, [this, every_ns] {
      RoundInLoop();
      return watched_.empty() ? Reactor::kOver : every_ns;
    });
  }
  watched_.push_back({std::move(activity), std::move(look)});
}

void Watchdog::RoundInLoop() {
  const auto over = [now_ns = MonotonicNanos()](Watched& one) {
    const uint64_t count = one.activity->count();  // Before the look: what begins during it is seen by the next one.
    if (one.idle && count == one.seen) return false;
    const Next next = one.look(now_ns);
    one.seen = count;
    one.idle = next == Next::kIdle;
    return next == Next::kOver;
  };
  watched_.erase(std::remove_if(watched_.begin(), watched_.end(), over), watched_.end());
}

}  // namespace tcpx
