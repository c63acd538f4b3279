// watchdog.h: housekeeping's rounds: every comm that does something is looked at a few times within each timeout.
//
// Purpose: black holes and stalls are found by samples, so that a message costs no clock and no count of its own. One
//          timer serves all comms, and those that are idle are passed over.
// Threads: InLoop: in the reactor.
// Units:   nanoseconds.
// Errors:  none. Without a comm there is no timer.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/params.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/tuning.h"

namespace tcpx {

// Whether anything was begun at one end of a connection, for threads that look at it now and then.
// Purpose: thousands of idle connections cost nothing but a look at this each. A reader that finds that an end does
//          nothing, and has nothing left to do, need not look again until this changes.
// Threads: any. Lifetime: shared.
class Activity {
 public:
  // A request is posted, a lane is lost or has another socket and what it owes, or the end closes.
  void Note() { count_.fetch_add(1, std::memory_order_release); }
  uint64_t count() const { return count_.load(std::memory_order_acquire); }

 private:
  std::atomic<uint64_t> count_{0};
};

class Watchdog {
 public:
  // kIdle: not before there is activity. kOver: never again.
  enum class Next { kLook, kIdle, kOver };
  // A look at what does not move. In the reactor.
  using Look = std::function<Next(int64_t now_ns)>;

  explicit Watchdog(Reactor* reactor) : reactor_(reactor) {}

  // Looks are this far apart: several within the peer timeout, a few within the time of a stall.
  static int64_t IntervalNs(const Options& options) {
    int64_t interval = options.peer_timeout_ns / (tuning::kSamplesMin + 1);
    if (options.stall_warn_ns > 0) interval = std::min(interval, options.stall_warn_ns / 4);
    return std::clamp(interval, 20 * kMillisecond, 10 * kSecond);
  }

  // `every_ns`: the same for all. A connection that leaves notes activity, and says kOver.
  void JoinInLoop(std::shared_ptr<const Activity> activity, int64_t every_ns, Look look) {
    if (watched_.empty()) {
      reactor_->RepeatInLoop(every_ns, [this, every_ns] {
        RoundInLoop();
        return watched_.empty() ? Reactor::kOver : every_ns;
      });
    }
    watched_.push_back({std::move(activity), std::move(look)});
  }

 private:
  struct Watched {
    std::shared_ptr<const Activity> activity;
    Look look;
    uint64_t seen = 0;  // of its activity, when it was looked at
    bool idle = false;  // as of then
  };

  void RoundInLoop() {
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

  Reactor* const reactor_;
  std::vector<Watched> watched_;
};

}  // namespace tcpx
