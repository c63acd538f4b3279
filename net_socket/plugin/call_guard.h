// call_guard.h: which calls may enter the plugin: none in a forked child, and none once the library has ended.
//
// Purpose: every call asks it first. In a forked child nothing that the parent holds is touched; where the parent was
//          protected, init succeeds there and shows a device that takes nothing. At exit a thread may still poll a
//          connect or an accept: what these use is freed only once no call is inside, and later ones are refused.
// Threads: any; no lock, since another thread may have held it at the fork.
// Errors:  kUnknown: in the child, with a WARN the first time; after the end, without a line.
#pragma once

#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "common/clock.h"
#include "common/log.h"

namespace tcpx {

class CallGuard {
 public:
  // A call that uses what the end frees: inside while this lives.
  class Pass {
   public:
    explicit Pass(CallGuard* guard) : guard_(guard), ok_(guard->Enter()) {}
    ~Pass() {
      if (ok_) guard_->inside_.fetch_sub(1);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    // False: it is not inside.
    bool ok() const { return ok_; }

   private:
    CallGuard* const guard_;
    const bool ok_;
  };

  // The parent was to be protected. Until it has said so nobody knows, and it may be.
  void SetProtects(bool protects) { protects_.store(protects, std::memory_order_relaxed); }
  // In the child: it shows a device all the same, which takes nothing, so that NCCL does not go on with sockets of its
  // own, in the clear.
  bool shows_device() const { return forked() && protects_.load(std::memory_order_relaxed); }
  // In the child after a fork.
  void Disable() { forked_.store(true, std::memory_order_relaxed); }
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  // What a call returns that may not enter. Calls with a comm, which the end does not free, are refused in the child
  // only.
  absl::Status Refusal() const {
    if (!forked()) return absl::UnknownError("tcpx is being unloaded");
    const absl::Status refusal = absl::UnknownError(
        "tcpx can't be used in a forked child: start the process anew (exec, or the spawn start method)");
    if (!warned_.exchange(true)) TCPX_WARN("%s", refusal.message());
    return refusal;
  }

  // From here on passes are refused. Waits until no call is inside; false: one still is after `patience_ns`.
  bool End(int64_t patience_ns) {
    ended_.store(true);
    for (const int64_t until_ns = MonotonicNanos() + patience_ns; inside_.load() != 0; usleep(kNapUs)) {
      if (MonotonicNanos() > until_ns) return false;
    }
    return true;
  }
  // It was no end: somebody uses the plugin.
  void Reopen() { ended_.store(false); }

 private:
  // From one look at the calls that are inside to the next. A guess.
  static constexpr unsigned kNapUs = 50;

  // Either End sees that it is inside, or it sees the end.
  bool Enter() {
    if (forked() || ended_.load()) return false;
    inside_.fetch_add(1);
    if (!ended_.load()) return true;
    inside_.fetch_sub(1);
    return false;
  }

  std::atomic<bool> forked_{false};
  std::atomic<bool> protects_{true};
  std::atomic<bool> ended_{false};
  std::atomic<int> inside_{0};
  mutable std::atomic<bool> warned_{false};
};

}  // namespace tcpx
