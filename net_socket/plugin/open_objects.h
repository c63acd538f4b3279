// open_objects.h: the listen comms and comms that NCCL holds: whose each one is, and that it uses the transport.
//
// Threads: under the plugin's mutex. Lifetime: an object until it is closed; a comm that never is stays as it is.
#pragma once

#include <memory>

#include "absl/container/flat_hash_map.h"
#include "net_socket/comm/comm.h"
#include "net_socket/connect/acceptor.h"
#include "net_socket/plugin/context.h"
#include "net_socket/plugin/transport_users.h"

namespace tcpx {

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
