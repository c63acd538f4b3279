#include "net_socket/engine/reactor.h"

#include <errno.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <memory>

#include "common/clock.h"
#include "common/status.h"
#include "common/thread.h"
#include "net_socket/engine/tuning.h"

namespace tcpx {
namespace {

constexpr uint64_t kWakeKey = ~uint64_t{0};
// At a time. Where there are more, the timers wait for the rest, but not for ever.
constexpr int kEvents = 128;

std::function<int64_t()> Once(std::function<void()> function) {
  return [function = std::move(function)] {
    function();
    return Reactor::kOver;
  };
}

uint64_t Key(int fd, uint32_t generation) { return uint64_t{generation} << 32 | static_cast<uint32_t>(fd); }

}  // namespace

Reactor::~Reactor() {
  RequestStop();
  Join();
}

absl::Status Reactor::Start() {
  epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
  event_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll_.valid() || !event_.valid()) return ErrnoStatus(errno, "epoll_create1/eventfd for housekeeping");
  epoll_event wake{};
  wake.events = EPOLLIN;
  wake.data.u64 = kWakeKey;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_.get(), &wake) != 0) return ErrnoStatus(errno, "epoll_ctl");
  MutexLock lock(mutex_);
  stopping_ = false;
  ended_ = false;
  auto thread = StartThread("the housekeeping thread", [this] { Run(); });
  ended_ = !thread.ok();
  if (thread.ok()) thread_ = *std::move(thread);
  return thread.status();
}

void Reactor::RequestStop() {
  MutexLock lock(mutex_);
  if (ended_) return;
  stopping_ = true;
  (void)eventfd_write(event_.get(), 1);
}

bool Reactor::ended() {
  MutexLock lock(mutex_);
  return ended_;
}

void Reactor::Join() {
  if (!thread_.joinable()) return;
  thread_.join();
  watched_.clear();
  timers_.clear();
  moved_.clear();
  epoll_.reset();
  event_.reset();
}

void Reactor::Post(std::function<void()> function) {
  MutexLock lock(mutex_);
  if (ended_) return;
  posted_.push_back(std::move(function));
  (void)eventfd_write(event_.get(), 1);
}

bool Reactor::RunSync(std::function<void()> function) {
  struct Meeting {
    Mutex mutex;
    CondVar changed;
    bool over TCPX_GUARDED_BY(mutex) = false;
  };
  const auto meeting = std::make_shared<Meeting>();
  bool ran = false;
  // Tells the waiter also when the function is dropped unrun.
  std::shared_ptr<void> guard(nullptr, [meeting](void*) {
    MutexLock lock(meeting->mutex);
    meeting->over = true;
    meeting->changed.NotifyAll();
  });
  Post([guard = std::move(guard), &ran, function = std::move(function)] {
    function();
    ran = true;
  });
  MutexLock lock(meeting->mutex);
  while (!meeting->over) meeting->changed.Wait(meeting->mutex);
  return ran;
}

absl::Status Reactor::WatchInLoop(int fd, uint32_t events, Handler* handler) {
  const uint32_t generation = ++generation_;
  epoll_event event{};
  event.events = events;
  event.data.u64 = Key(fd, generation);
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) return ErrnoStatus(errno, "epoll_ctl");
  watched_[fd] = {handler, generation};
  return absl::OkStatus();
}

void Reactor::ChangeInLoop(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = Key(fd, watched_[fd].generation);
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Reactor::UnwatchInLoop(int fd) {
  if (watched_.erase(fd) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

Reactor::TimerId Reactor::Add(int64_t at_ns, Timer timer) {
  const TimerId id{at_ns, ++next_timer_};
  timers_.emplace(id, std::move(timer));
  return id;
}

void Reactor::MoveTimer(uint64_t id, int64_t at_ns, Timer timer) {
  const TimerId at{at_ns, id};
  moved_[id] = at;
  timers_.emplace(at, std::move(timer));
}

Reactor::TimerId Reactor::AddTimerInLoop(int64_t at_ns, std::function<void()> function) {
  return Add(at_ns, {Once(std::move(function))});
}

Reactor::TimerId Reactor::AddDeadlineInLoop(int64_t after_ns, std::function<void()> function) {
  return RepeatDeadlineInLoop(after_ns, Once(std::move(function)));
}

Reactor::TimerId Reactor::RepeatInLoop(int64_t after_ns, Repeated function) {
  return Add(MonotonicNanos() + after_ns, {std::move(function)});
}

Reactor::TimerId Reactor::RepeatDeadlineInLoop(int64_t after_ns, Repeated function) {
  return Add(MonotonicNanos() + after_ns, {std::move(function), true, after_ns});
}

void Reactor::CancelTimerInLoop(TimerId id) {
  if (running_ == id.second) running_ = 0;
  auto moved = moved_.find(id.second);
  if (moved == moved_.end()) {
    timers_.erase(id);
    return;
  }
  timers_.erase(moved->second);
  moved_.erase(moved);
}

// Timers come after what has arrived: after a pause (a stopped process, a suspended machine) both are due, and a
// deadline must not judge a peer whose answer is there already. So those run that were due before the latest look. More
// busy descriptors than a look takes delay them no longer than kTimersWaitNs.
void Reactor::Run() {
  pthread_setname_np(pthread_self(), "tcpx-house");
  epoll_event events[kEvents];
  int64_t full_since_ns = 0;  // since then each look has found more than it takes; 0: the latest has not
  for (;;) {
    RunPosted();
    // For the next timer; 0: it is due; -1: there is none.
    const int64_t wait_ns =
        timers_.empty() ? -1 : std::max<int64_t>(timers_.begin()->first.first - MonotonicNanos(), 0);
    {
      MutexLock lock(mutex_);
      if (stopping_ && posted_.empty() && held_ == 0 && wait_ns != 0) {
        ended_ = true;
        return;
      }
    }
    const int timeout_ms = wait_ns < 0 ? -1 : static_cast<int>((wait_ns + kMillisecond - 1) / kMillisecond);
    const int64_t looked_ns = MonotonicNanos();
    const int count = epoll_wait(epoll_.get(), events, kEvents, timeout_ms);
    for (int i = 0; i < count; ++i) Dispatch(events[i].data.u64, events[i].events);
    if (count < 0) continue;
    if (count == kEvents && full_since_ns == 0) full_since_ns = looked_ns;
    if (count == kEvents && MonotonicNanos() - full_since_ns < tuning::kTimersWaitNs) continue;
    full_since_ns = 0;
    RunTimers(looked_ns);
  }
}

void Reactor::RunPosted() {
  std::vector<std::function<void()>> functions;
  {
    MutexLock lock(mutex_);
    functions.swap(posted_);
  }
  for (auto& function : functions) {
    function();
    function = nullptr;  // RunSync waits for that.
  }
}

void Reactor::RunTimers(int64_t until_ns) {
  while (!timers_.empty() && timers_.begin()->first.first <= until_ns) {
    const TimerId id = timers_.begin()->first;
    Timer timer = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    const int64_t now = MonotonicNanos();
    const int64_t again_ns = std::exchange(timer.again_ns, 0);
    if (again_ns > 0 && now - id.first > tuning::kStandstillNs) {
      MoveTimer(id.second, now + again_ns, std::move(timer));
      continue;
    }
    moved_.erase(id.second);
    running_ = id.second;
    const int64_t next_ns = timer.function();
    if (std::exchange(running_, 0) == 0 || next_ns < 0) continue;
    if (timer.deadline) timer.again_ns = next_ns;
    MoveTimer(id.second, MonotonicNanos() + next_ns, std::move(timer));
  }
}

void Reactor::Dispatch(uint64_t key, uint32_t events) {
  if (key == kWakeKey) {
    eventfd_t drained;
    (void)eventfd_read(event_.get(), &drained);
    return;
  }
  auto found = watched_.find(static_cast<int>(key & 0xffffffff));
  // The descriptor may have been closed, and its number taken again, since the kernel reported it.
  if (found == watched_.end() || found->second.generation != static_cast<uint32_t>(key >> 32)) return;
  found->second.handler->OnEvents(events);
}

}  // namespace tcpx
