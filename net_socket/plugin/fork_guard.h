// fork_guard.h: what the plugin answers in a forked child, where none of its threads runs.
//
// Purpose: every call asks it first; in the child all are refused, and nothing that the parent holds is touched. Where
//          the parent was protected init succeeds there, and shows a device that takes nothing.
// Threads: any; no lock, since another thread may have held it at the fork.
// Errors:  Usable: kUnknown in the child, with a WARN the first time.
#pragma once

#include <atomic>

#include "absl/status/status.h"

namespace tcpx {

class ForkGuard {
 public:
  // The parent was to be protected. Until it has said so nobody knows, and it may be.
  void SetProtects(bool protects) { protects_.store(protects, std::memory_order_relaxed); }
  // In the child: it shows a device all the same, which takes nothing, so that NCCL does not go on with sockets of its
  // own, in the clear.
  bool shows_device() const { return forked() && protects_.load(std::memory_order_relaxed); }
  // In the child after a fork.
  void Disable() { forked_.store(true, std::memory_order_relaxed); }
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  absl::Status Usable() const { return forked() ? Refusal() : absl::OkStatus(); }

 private:
  absl::Status Refusal() const;

  std::atomic<bool> forked_{false};
  std::atomic<bool> protects_{true};
  mutable std::atomic<bool> told_{false};
};

}  // namespace tcpx
