// open_objects.h: the listen comms and comms that NCCL holds: whose each one is, and that it uses the transport.
//
// Threads: under the plugin's mutex. Lifetime: an object until it is closed; a comm that never is stays as it is.
#pragma once

#include <atomic>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "net_socket/comm/comm.h"
#include "net_socket/connect/acceptor.h"
#include "net_socket/plugin/context.h"
#include "net_socket/plugin/transport_users.h"

namespace tcpx {

// What the plugin answers in a forked child, where none of its threads runs.
// Purpose: every call asks it first; in the child all are refused, and nothing that the parent holds is touched. Where
//          the parent was protected init succeeds there, and shows a device that takes nothing.
// Threads: any; no lock, since another thread may have held it at the fork.
// Errors:  Usable: kUnknown in the child, with a WARN the first time.
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
  mutable std::atomic<bool> warned_{false};
};

class ListenComm {
 public:
  Context* context = nullptr;
  std::shared_ptr<Listening> listening;
  Acceptor* acceptor = nullptr;
  TransportUse use;  // v11 and up: nobody's, the context's will do
};

class OpenObjects {
 public:
  // Whose a comm is.
  struct Owner {
    Context* context = nullptr;
    TransportUse use;  // as ListenComm's
  };

  ListenComm* Add(std::unique_ptr<ListenComm> listen);
  // Null: it was closed before.
  std::unique_ptr<ListenComm> Take(ListenComm* listen);
  // At unload: stops the listening of all.
  void CloseListens();

  void Add(Comm* comm, Owner owner);
  bool contains(Comm* comm) const { return comms_.contains(comm); }
  bool no_comms() const { return comms_.empty(); }
  // Frees a closed comm; its context keeps its counters.
  Owner Remove(Comm* comm);

 private:
  absl::flat_hash_map<ListenComm*, std::unique_ptr<ListenComm>> listens_;
  absl::flat_hash_map<Comm*, Owner> comms_;
};

}  // namespace tcpx
