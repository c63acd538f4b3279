// idle_lanes.h: which bulk lanes of a connection wait for work, and waking one of them.
//
// Purpose: to wake a thread that sleeps costs 7 to 10 us. So a thread that posts wakes one lane; a lane that finds more
//          work than it takes wakes the next, in its own thread. No wake is lost: a lane says that it is idle before it
//          looks for work the last time, and a thread that posts looks for idle lanes after posting.
// Threads: Idle and WakeNext by a lane's thread; WakeOne by the calling thread; Close by the thread that detaches the
//          lanes, before it does; Take by any.
// Lifetime: lanes outlive their Detach, which comes after Close. Errors: none.
#pragma once

#include <atomic>
#include <memory>

#include "common/mutex.h"
#include "net_socket/engine/progress_pool.h"

namespace tcpx {

class IdleLanes {
 public:
  explicit IdleLanes(int lanes) : count_(lanes), lanes_(new Entry[lanes]) {}

  // Before the lane is attached, and before anything is posted.
  void Enter(int index, PoolLane* lane) { lanes_[index].lane = lane; }

  // From here on the lane waits until somebody takes it.
  void Idle(int index) { lanes_[index].idle.store(true, std::memory_order_seq_cst); }
  // True exactly when it was idle.
  bool Take(int index) {
    std::atomic<bool>& idle = lanes_[index].idle;
    return idle.load(std::memory_order_seq_cst) && idle.exchange(false, std::memory_order_seq_cst);
  }

  // Kicks one idle lane, if there is any.
  void WakeOne();
  // The same, unless closed.
  void WakeNext();
  // Returns once no lane is being kicked by another, nor will be.
  void Close();

 private:
  struct Entry {
    PoolLane* lane = nullptr;
    std::atomic<bool> idle{false};
  };

  bool AnyIdle() const;

  const int count_;
  const std::unique_ptr<Entry[]> lanes_;
  Mutex mutex_;  // among lanes, and Close: a lane that is kicked is not detached meanwhile
  bool closed_ TCPX_GUARDED_BY(mutex_) = false;
};

}  // namespace tcpx
