// progress_pool.h: the process's progress threads, and the lanes they own.
//
// Purpose: bulk lanes belong to one thread of the pool for life. Callers only kick a lane (an atomic flag, a push, and
//          a wake if the thread sleeps); all work on it happens in its thread. The number of threads never grows with
//          connections. A lane goes to a thread near its device, where there is one (common/cpu_plan.h).
// Threads: Attach, Kick and Detach from any thread; the *InLoop functions of a lane in its own thread only.
// Lifetime: a lane outlives its Detach, which returns once the thread has forgotten it and no operation is in flight.
// Units:   nanoseconds.
// Errors:  Start fails with the engine's status when not even one thread could be set up.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/cpu_plan.h"
#include "common/mutex.h"
#include "common/params.h"
#include "net_socket/engine/engine.h"
#include "net_socket/engine/socket_swap.h"

namespace tcpx {

class ProgressThread;

// How long a progress thread looks for more work before it sleeps.
// Purpose: spinning pays only where work comes again soon. Each gap between two pieces of work that spinning could have
//          bridged doubles the time, up to the maximum; each longer one halves it, down to a sixteenth: so a thread
//          that is needed once a millisecond does not burn its CPU for a twentieth of the time. Pure.
// Threads: one at a time.
class AdaptiveSpin {
 public:
  explicit AdaptiveSpin(int64_t max_ns) : max_ns_(max_ns), limit_ns_(max_ns) {}

  // After this long without work a thread sleeps.
  int64_t limit_ns() const { return limit_ns_; }
  // There is work again, `gap_ns` after the last.
  void WorkAfter(int64_t gap_ns) {
    limit_ns_ = gap_ns <= max_ns_ ? std::min(2 * limit_ns_, max_ns_) : std::max(limit_ns_ / 2, max_ns_ / 16);
  }

 private:
  const int64_t max_ns_;
  int64_t limit_ns_;
};

class PoolLane {
 public:
  PoolLane() { op_.owner = this; }
  virtual ~PoolLane() = default;

  // There may be something to do: submits an operation unless there is nothing. Called at any time, also between a
  // completion and its CompleteInLoop. A lane that has to wait without an operation sets retry_at_ns_ and is called
  // again then.
  virtual void AdvanceInLoop(Engine* engine) = 0;
  // An operation of the lane has completed. Called before AdvanceInLoop; not called once the lane is being detached.
  virtual void CompleteInLoop(const Completion& completion) = 0;
  // The lane is being detached: ends what is in flight, by resetting the connection if it must.
  virtual void AbortInLoop(Engine* engine) { engine->Cancel(&op_); }
  // The lane leaves its thread, once: nothing of it is in flight.
  virtual void LeaveInLoop(Engine* engine) { engine->Forget(op_.fd); }
  // From any thread; kick the lane then.
  void Offer(SocketOffer offer) { next_socket_.Put(std::move(offer)); }

 protected:
  // Every operation of a lane goes to the engine through here; op->owner is this lane.
  void Submit(Engine* engine, IoOp* op) {
    ++in_flight_;
    engine->Submit(op);
  }

  IoOp op_;
  int64_t retry_at_ns_ = 0;  // 0: not waiting
  NextSocket next_socket_;

 private:
  friend class ProgressThread;
  friend class ProgressPool;

  ProgressThread* thread_ = nullptr;
  std::atomic<PoolLane*> next_{nullptr};
  std::atomic<bool> queued_{false};
  std::atomic<bool> detaching_{false};
  int in_flight_ = 0;      // operations whose last completion was not served yet
  bool detached_ = false;  // guarded by its thread's mutex_
};

class ProgressThread {
 public:
  explicit ProgressThread(int64_t spin_ns) : spin_(spin_ns) {}
  ~ProgressThread() { Stop(); }

  // Starts the thread; returns once its engine runs or has failed. *ring: an error where a ring was wanted, and epoll
  // is used instead.
  absl::Status Start(EngineChoice choice, const ThreadPlace& place, int index, absl::Status* ring);
  void Stop();
  void Push(PoolLane* lane);

 private:
  friend class ProgressPool;

  void Run(EngineChoice choice, const ThreadPlace& place, int index, absl::Status* ring);
  bool ServeQueue();
  void Serve(PoolLane* lane);
  void ServeCompletion(const Completion& completion);
  void FinishDetach(PoolLane* lane);
  void Advance(PoolLane* lane);
  // Calls lanes whose time has come; returns when the next one is due, 0 for none.
  int64_t ServeRetries();

  std::vector<int> devices_;   // those that it is near to
  std::atomic<int> lanes_{0};  // attached
  AdaptiveSpin spin_;          // the thread's own
  std::thread thread_;
  std::unique_ptr<Engine> engine_;  // the thread's own, but for Wake
  std::atomic<PoolLane*> queue_{nullptr};
  std::vector<PoolLane*> waiting_;  // with retry_at_ns_ set; in the loop
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stop_{false};

  Mutex mutex_;  // start and detach: never while a message is moved
  CondVar changed_;
  bool started_ TCPX_GUARDED_BY(mutex_) = false;
  bool ended_ TCPX_GUARDED_BY(mutex_) = false;  // Run is over: nothing more will be detached
  absl::Status start_status_ TCPX_GUARDED_BY(mutex_);
};

class ProgressPool {
 public:
  // A thread without a place of its own runs where its creator may. `choice`: auto and io_uring both mean a ring, and
  // epoll where one thread gets none; a user who asked for io_uring then gets a WARN.
  absl::Status Start(EngineChoice choice, int threads, const std::vector<ThreadPlace>& places, int64_t spin_ns);
  int threads() const { return static_cast<int>(threads_.size()); }
  // Ends the threads; lanes that are still attached stay where they are. For unloading and exit.
  void Stop();

  // Gives `lane` to the thread with the fewest lanes, and kicks it; of the threads near `device`, where there are any.
  void Attach(PoolLane* lane, int device = -1);
  static void Kick(PoolLane* lane) { lane->thread_->Push(lane); }
  // Cancels what is in flight and waits until the thread has let go. Not from a pool thread. No-op when never attached.
  static void Detach(PoolLane* lane);

 private:
  std::vector<std::unique_ptr<ProgressThread>> threads_;
  std::atomic<unsigned> turn_{0};
};

}  // namespace tcpx
