// watchdog.h: housekeeping's rounds: every comm that does something is looked at a few times within each timeout.
//
// Purpose: black holes and stalls are found by samples, so that a message costs no clock and no count of its own. One
//          timer serves all comms, and those that are idle are passed over.
// Threads: InLoop: in the reactor.
// Units:   nanoseconds.
// Errors:  none. Without a comm there is no timer.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "common/params.h"
#include "net_socket/engine/reactor.h"

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
  static int64_t IntervalNs(const Options& options);

  // `every_ns`: the same for all. A connection that leaves notes activity, and says kOver.
  void JoinInLoop(std::shared_ptr<const Activity> activity, int64_t every_ns, Look look);

 private:
  struct Watched {
    std::shared_ptr<const Activity> activity;
    Look look;
    uint64_t seen = 0;  // of its activity, when it was looked at
    bool idle = false;  // as of then
  };

  void RoundInLoop();

  Reactor* const reactor_;
  std::vector<Watched> watched_;
};

}  // namespace tcpx
