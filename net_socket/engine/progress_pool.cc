#include "net_socket/engine/progress_pool.h"

#include <pthread.h>
#include <sched.h>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/cpu_facts.h"
#include "common/log.h"
#include "common/thread.h"

namespace tcpx {
namespace {

constexpr int kBatch = 64;

// A mask of any width, unlike cpu_set_t.
void PinTo(const ThreadPlace& place) {
  if (place.cpus.empty()) return;
  const int width = place.cpus.back() + 1;
  cpu_set_t* set = CPU_ALLOC(width);
  if (set == nullptr) return;
  const size_t bytes = CPU_ALLOC_SIZE(width);
  CPU_ZERO_S(bytes, set);
  for (int cpu : place.cpus) CPU_SET_S(cpu, bytes, set);
  const bool refused = sched_setaffinity(0, bytes, set) != 0;
  CPU_FREE(set);
  if (!refused) return;
  if (place.asked) {
    TCPX_WARN("TCPX_CPUS: the kernel refused CPUs %s; not pinned", FormatCpuList(place.cpus));
  } else {
    TCPX_INFO("progress thread: the kernel refused CPUs %s; not pinned", FormatCpuList(place.cpus));
  }
}

// *ring: why there is none where one was wanted.
absl::StatusOr<std::unique_ptr<Engine>> OpenEngine(EngineChoice choice, absl::Status* ring) {
  if (choice == EngineChoice::kEpoll) return MakeEpollEngine();
  auto engine = MakeUringEngine();
  *ring = engine.status();
  return engine.ok() ? std::move(engine) : MakeEpollEngine();
}

// Once, for all threads that should have a ring and have none.
void LogRings(EngineChoice choice, const std::string& text) {
  if (choice == EngineChoice::kIoUring) {
    TCPX_WARN("TCPX_ENGINE=io_uring: %s", text);
  } else {
    TCPX_INFO("%s", text);
  }
}

}  // namespace

absl::Status ProgressThread::Start(EngineChoice choice, const ThreadPlace& place, int index, absl::Status* ring) {
  devices_ = place.devices;
  auto thread = StartThread("a progress thread", [=] { Run(choice, place, index, ring); });
  if (!thread.ok()) return thread.status();
  thread_ = *std::move(thread);
  MutexLock lock(mutex_);
  while (!started_) changed_.Wait(mutex_);
  return start_status_;
}

void ProgressThread::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true, std::memory_order_seq_cst);
  if (engine_ != nullptr) engine_->Wake();
  thread_.join();
}

void ProgressThread::Push(PoolLane* lane) {
  if (lane->queued_.exchange(true, std::memory_order_seq_cst)) return;
  PoolLane* head = queue_.load(std::memory_order_relaxed);
  do {
    lane->next_.store(head, std::memory_order_relaxed);
  } while (!queue_.compare_exchange_weak(head, lane, std::memory_order_seq_cst, std::memory_order_relaxed));
  // The thread announces sleep, then looks at the queue once more; we push, then look whether it sleeps.
  if (asleep_.load(std::memory_order_seq_cst) && asleep_.exchange(false, std::memory_order_seq_cst)) engine_->Wake();
}

void ProgressThread::Run(EngineChoice choice, const ThreadPlace& place, int index, absl::Status* ring) {
  pthread_setname_np(pthread_self(), absl::StrCat("tcpx-io-", index).c_str());
  PinTo(place);
  auto engine = OpenEngine(choice, ring);
  {
    MutexLock lock(mutex_);
    started_ = true;
    start_status_ = engine.status();
    if (engine.ok()) engine_ = *std::move(engine);
    changed_.NotifyAll();
  }
  if (engine_ == nullptr) return;
  Completion completions[kBatch];
  int64_t idle_since = MonotonicNanos();
  while (!stop_.load(std::memory_order_relaxed)) {
    bool busy = ServeQueue();
    int64_t timeout_ns = 0;
    const int64_t retry_at_ns = ServeRetries();
    if (!busy && MonotonicNanos() - idle_since > spin_.limit_ns()) {
      asleep_.store(true, std::memory_order_seq_cst);
      const bool late_work = queue_.load(std::memory_order_seq_cst) != nullptr || stop_.load(std::memory_order_seq_cst);
      timeout_ns = late_work ? 0 : retry_at_ns == 0 ? -1 : std::max<int64_t>(retry_at_ns - MonotonicNanos(), 0);
    }
    const int count = engine_->Reap(completions, kBatch, timeout_ns);
    asleep_.store(false, std::memory_order_seq_cst);
    for (int i = 0; i < count; ++i) ServeCompletion(completions[i]);
    if (!busy && count == 0) continue;
    const int64_t now = MonotonicNanos();
    spin_.WorkAfter(now - idle_since);
    idle_since = now;
  }
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

bool ProgressThread::ServeQueue() {
  PoolLane* lane = queue_.exchange(nullptr, std::memory_order_seq_cst);
  const bool any = lane != nullptr;
  while (lane != nullptr) {
    PoolLane* next = lane->next_.load(std::memory_order_relaxed);
    // From here on a kick queues it again. What threads that found it queued wrote before is seen, whatever its order:
    // this reads their mark, which a plain store would only replace.
    lane->queued_.exchange(false, std::memory_order_seq_cst);
    Serve(lane);
    lane = next;
  }
  return any;
}

void ProgressThread::Serve(PoolLane* lane) {
  if (!lane->detaching_.load(std::memory_order_acquire)) {
    Advance(lane);
  } else if (lane->in_flight_ > 0) {
    lane->AbortInLoop(engine_.get());
  } else {
    FinishDetach(lane);
  }
}

void ProgressThread::ServeCompletion(const Completion& completion) {
  PoolLane* lane = static_cast<PoolLane*>(completion.op->owner);
  if (!completion.held) --lane->in_flight_;
  if (lane->detaching_.load(std::memory_order_acquire)) {
    if (lane->in_flight_ == 0) FinishDetach(lane);
    return;
  }
  lane->CompleteInLoop(completion);
  Advance(lane);
}

void ProgressThread::Advance(PoolLane* lane) {
  const bool was_waiting = lane->retry_at_ns_ != 0;
  lane->retry_at_ns_ = 0;
  lane->AdvanceInLoop(engine_.get());
  if (lane->retry_at_ns_ != 0 && !was_waiting) waiting_.push_back(lane);
  if (lane->retry_at_ns_ == 0 && was_waiting) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), lane));
}

int64_t ProgressThread::ServeRetries() {
  if (waiting_.empty()) return 0;
  const int64_t now = MonotonicNanos();
  int64_t next = 0;
  // Backwards: Advance removes the lane it is called for, or leaves the order as it is.
  for (size_t i = waiting_.size(); i-- > 0;) {
    PoolLane* lane = waiting_[i];
    if (lane->retry_at_ns_ <= now) Advance(lane);
    if (lane->retry_at_ns_ != 0 && (next == 0 || lane->retry_at_ns_ < next)) next = lane->retry_at_ns_;
  }
  return next;
}

// The lane may be destroyed as soon as the lock is given up. A queued lane is let go only from the queue: Serve comes
// here again. Detach marks and queues it under the same lock, so no completion can let it go in between.
void ProgressThread::FinishDetach(PoolLane* lane) {
  MutexLock lock(mutex_);
  if (lane->queued_.load(std::memory_order_seq_cst)) return;
  lane->LeaveInLoop(engine_.get());
  if (lane->retry_at_ns_ != 0) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), lane));
  lane->detached_ = true;
  changed_.NotifyAll();
}

absl::Status ProgressPool::Start(EngineChoice choice, int threads, const std::vector<ThreadPlace>& places,
                                 int64_t spin_ns) {
  absl::Status status, no_ring;
  int without = 0;
  for (int i = 0; i < threads; ++i) {
    auto thread = std::make_unique<ProgressThread>(spin_ns);
    absl::Status ring;
    status = thread->Start(choice, static_cast<size_t>(i) < places.size() ? places[i] : ThreadPlace(), i, &ring);
    if (!status.ok()) break;
    threads_.push_back(std::move(thread));
    if (ring.ok()) continue;
    ++without;
    no_ring = ring;
  }
  if (!status.ok() && !threads_.empty()) {
    TCPX_WARN("%s; going on with %d progress threads instead of %d", std::string(status.message()), this->threads(),
              threads);
  }
  if (without > 0) {
    LogRings(choice, absl::StrCat(without, " of ", this->threads(), " progress threads have no ring (",
                                  no_ring.message(), ") and use epoll"));
  }
  return threads_.empty() ? status : absl::OkStatus();
}

void ProgressPool::Stop() {
  for (auto& thread : threads_) thread->Stop();
}

// With lanes spread evenly this is one thread after the other. Two calls at once may find the same thread; the next
// ones even that out.
void ProgressPool::Attach(PoolLane* lane, int device) {
  const unsigned turn = turn_.fetch_add(1, std::memory_order_relaxed);
  ProgressThread* best = nullptr;
  bool best_near = false;
  for (size_t i = 0; i < threads_.size(); ++i) {
    ProgressThread* thread = threads_[(turn + i) % threads_.size()].get();
    const bool near = std::find(thread->devices_.begin(), thread->devices_.end(), device) != thread->devices_.end();
    const bool fewer = best == nullptr || thread->lanes_.load() < best->lanes_.load();
    if (near == best_near ? !fewer : best_near) continue;
    best = thread;
    best_near = near;
  }
  best->lanes_.fetch_add(1);
  lane->thread_ = best;
  Kick(lane);
}

void ProgressPool::Detach(PoolLane* lane) {
  ProgressThread* thread = lane->thread_;
  if (thread == nullptr) return;
  MutexLock lock(thread->mutex_);
  lane->detaching_.store(true, std::memory_order_seq_cst);
  thread->Push(lane);
  while (!lane->detached_ && !thread->ended_) thread->changed_.Wait(thread->mutex_);
  lane->thread_ = nullptr;
  thread->lanes_.fetch_sub(1);
}

}  // namespace tcpx
