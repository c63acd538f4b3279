// fork_guard.h: what the plugin answers in a forked child, where none of its threads runs.
//
// Purpose: every call asks it first; in the child all are refused, and nothing that the parent holds is touched.
//
// Threads: any; no lock, since another thread may have held it at the fork.
// Errors:  Usable: kUnknown in the child, with a WARN the first time.
#ifndef TCPX_NET_SOCKET_PLUGIN_FORK_GUARD_H_
#define TCPX_NET_SOCKET_PLUGIN_FORK_GUARD_H_

#include <atomic>

#include "absl/status/status.h"

namespace tcpx {

class ForkGuard {
 public:
  // In the child after a fork.
  void Disable() { forked_.store(true, std::memory_order_relaxed); }
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  absl::Status Usable() const { return forked() ? Refusal() : absl::OkStatus(); }

 private:
  absl::Status Refusal() const;

  std::atomic<bool> forked_{false};
  mutable std::atomic<bool> told_{false};
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PLUGIN_FORK_GUARD_H_
