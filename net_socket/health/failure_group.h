// failure_group.h: the connections of one communicator; none outlives the failure of another.
//
// Purpose: in a ring only the neighbours of a dead rank see it die; the others would wait for ever. So a connection
//          that fails takes its communicator's other connections with it, and each of them tells its peer the first
//          cause.
// Threads: InLoop: in the reactor; the rest from any.
// Lifetime: shared by its context and its connections.
// Errors:  none of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "common/log.h"
#include "common/mutex.h"
#include "net_socket/engine/link.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/tuning.h"

namespace tcpx {

class FailureGroup final : public std::enable_shared_from_this<FailureGroup> {
 public:
  class Member {
   public:
    // Another connection of the same communicator has failed. In the reactor.
    virtual void ContextFailed(const std::string& cause) = 0;

   protected:
    ~Member() = default;
  };

  void JoinInLoop(Link<Member> member) {
    const std::string failed = cause();
    if (!failed.empty()) member.With([&failed](Member* one) { one->ContextFailed(failed); });
    members_.insert(std::move(member));
  }
  void LeaveInLoop(const Link<Member>& member) { members_.erase(member); }

  // Held by a connection that fails, up to its line in the log: so an error that follows from another one is returned
  // after that one's line, which names the cause; the process may exit on it. Nothing is called with it that waits.
  std::unique_lock<Mutex> Logging() { return std::unique_lock<Mutex>(logging_); }
  // The first cause wins: true exactly for it. Its finder writes the one line of the log, then spreads it.
  bool Claim(const std::string& cause) {
    MutexLock lock(mutex_);
    if (!cause_.empty()) return false;
    cause_ = cause;
    claimed_.store(true, std::memory_order_release);
    return true;
  }
  // All members hear the cause, soon.
  void Spread(Reactor* reactor) {
    reactor->Post([self = shared_from_this()] {
      const std::string why = self->cause();
      if (self->members_.size() > 1) {
        TCPX_INFO("all %d connections of the communicator end (TCPX_SPREAD_ERRORS): %s", self->members_.size(), why);
      }
      for (const Link<Member>& member : self->members_) {
        member.With([&why](Member* one) { one->ContextFailed(why); });
      }
    });
  }
  // Something has failed.
  bool claimed() const { return claimed_.load(std::memory_order_acquire); }
  // Empty exactly when nothing has failed.
  std::string cause() const {
    MutexLock lock(mutex_);
    return cause_;
  }
  // This rank has reset one of the connections itself, as an abort does: what follows from that is no news here.
  void Hush() {
    MutexLock lock(mutex_);
    hushed_ = true;
  }
  // This rank closes its connections: what a peer makes of that is no news here, for kRankClosingNs from the
  // latest one on.
  void NoteClosing(int64_t now_ns) { closed_ns_.store(now_ns, std::memory_order_relaxed); }
  bool Closing(int64_t now_ns) const {
    return now_ns - closed_ns_.load(std::memory_order_relaxed) < tuning::kRankClosingNs;
  }
  // What this rank has done itself: it may come back from a peer that spreads it.
  void KeepQuiet(const std::string& cause) {
    MutexLock lock(mutex_);
    quiet_.insert(cause);
  }
  // True exactly when nobody here need hear of this cause.
  bool Quiet(const std::string& cause) const {
    MutexLock lock(mutex_);
    return hushed_ || quiet_.contains(cause);
  }

 private:
  Mutex logging_;  // of lines in the log: guards no member
  std::atomic<int64_t> closed_ns_{-tuning::kRankClosingNs};
  mutable Mutex mutex_;
  std::string cause_ TCPX_GUARDED_BY(mutex_);
  std::atomic<bool> claimed_{false};  // cause_ is set
  bool hushed_ TCPX_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<std::string> quiet_ TCPX_GUARDED_BY(mutex_);
  absl::flat_hash_set<Link<Member>> members_;  // in the reactor
};

}  // namespace tcpx
