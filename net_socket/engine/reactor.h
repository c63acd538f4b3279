// reactor.h: the housekeeping thread: one per process, asleep until something needs it.
//
// Purpose: incoming sockets, hellos, dialling, sockets that linger, and failures on idle lanes are all served here, so
//          that NCCL's threads never wait for a peer and a message never waits for housekeeping.
// Threads: Start, Post, RunSync, RequestStop and Join from any thread but its own; the rest InLoop, that is from
//          handlers, timers and posted functions.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  Start fails where the kernel gives no descriptor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/fd.h"
#include "common/mutex.h"

namespace tcpx {

class Reactor {
 public:
  // Served by the reactor for one descriptor. May unwatch (and destroy) itself in OnEvents.
  class Handler {
   public:
    virtual ~Handler() = default;
    virtual void OnEvents(uint32_t events) = 0;  // EPOLL* bits
  };
  using TimerId = std::pair<int64_t, uint64_t>;

  Reactor() = default;
  ~Reactor();

  absl::Status Start();
  // The loop ends once nothing holds it. Whatever holds it has its own deadline.
  void RequestStop();
  // Waits for the end of the loop. No-op when it is not running.
  void Join();
  // True exactly when Join would not wait.
  bool ended();

  // Runs `function` in the loop, soon. After the loop's end nothing runs.
  void Post(std::function<void()> function);
  // The same, and waits for it. False if the loop has ended without running it.
  bool RunSync(std::function<void()> function);

  absl::Status WatchInLoop(int fd, uint32_t events, Handler* handler);
  void ChangeInLoop(int fd, uint32_t events);
  void UnwatchInLoop(int fd);
  TimerId AddTimerInLoop(int64_t at_ns, std::function<void()> function);
  // A deadline for somebody else, `after_ns` from now. Where it would be served late by more than kStandstillNs
  // (tuning.h), this process itself was stopped: it then runs once more, so that nobody is judged for that.
  TimerId AddDeadlineInLoop(int64_t after_ns, std::function<void()> function);
  // Runs `function` after this long, then again and again: it returns the time to the next run, or kOver. The id serves
  // for all times, also from within the function. With Deadline each time is one as above.
  using Repeated = std::function<int64_t()>;
  static constexpr int64_t kOver = -1;
  TimerId RepeatInLoop(int64_t after_ns, Repeated function);
  TimerId RepeatDeadlineInLoop(int64_t after_ns, Repeated function);
  void CancelTimerInLoop(TimerId id);
  size_t TimersInLoop() const { return timers_.size(); }
  // While held the loop does not end: something still has to be delivered.
  void HoldInLoop() { ++held_; }
  void ReleaseInLoop() { --held_; }

 private:
  struct Watched {
    Handler* handler = nullptr;
    uint32_t generation = 0;
  };

  struct Timer {
    Repeated function;
    bool deadline = false;
    int64_t again_ns = 0;  // of a deadline that has not run once more
  };

  TimerId Add(int64_t at_ns, Timer timer);
  // Under the second half of the id that it has had from the start.
  void MoveTimer(uint64_t id, int64_t at_ns, Timer timer);
  void Run();
  void RunPosted();
  // Those that were due at `until_ns`.
  void RunTimers(int64_t until_ns);
  void Dispatch(uint64_t key, uint32_t events);

  OwnedFd epoll_;
  OwnedFd event_;
  std::thread thread_;

  Mutex mutex_;
  std::vector<std::function<void()>> posted_ TCPX_GUARDED_BY(mutex_);
  bool stopping_ TCPX_GUARDED_BY(mutex_) = false;
  bool ended_ TCPX_GUARDED_BY(mutex_) = true;

  // In the loop only.
  absl::flat_hash_map<int, Watched> watched_;
  std::map<TimerId, Timer> timers_;
  absl::flat_hash_map<uint64_t, TimerId> moved_;  // where those are now that run again, by the second half of their id
  uint64_t running_ = 0;                          // the same of the one that runs; 0: none, or it was cancelled
  int held_ = 0;
  uint32_t generation_ = 0;
  uint64_t next_timer_ = 0;
};

}  // namespace tcpx
