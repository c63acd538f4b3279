// context.h: what a context keeps: its settings, what it has open, and what its connections have moved; which contexts
// there are, and which listen comms and comms NCCL holds.
//
// Purpose: one for each NCCL communicator (v11 and up), one for the process (older); listen and connect take their
//          settings from the context they are given.
// Threads: under the plugin's mutex; the comms' own counters may be read at any time.
// Units:   messages and bytes that were reported done.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "common/log.h"
#include "nccl/plugin_api.h"
#include "net_socket/comm/comm.h"
#include "net_socket/comm/communicator.h"
#include "net_socket/connect/acceptor.h"
#include "net_socket/plugin/transport.h"
#include "net_socket/stats/totals.h"

namespace tcpx {

struct ContextStatistics {
  uint64_t connections = 0;  // send comms and receive comms, also closed ones
  CommTally sent;
  CommTally received;
};

class Context {
 public:
  // `octet` is the traffic class of the lanes that it dials, or kNoTrafficClass.
  Context(const ContextOptions& options, int octet, bool spread_errors);

  const int api_version;
  const pthread_t made_by = pthread_self();
  bool logs_table = false;  // TCPX_STATS
  absl::Status usable;      // an error: every listen and connect fails with it
  const std::shared_ptr<Communicator> communicator;
  TransportUse use;  // v11 and up, from the first listen or connect on
  absl::flat_hash_set<ListenComm*> listens;
  absl::flat_hash_map<uint64_t, TransportUse> dials;  // unfinished connects by key; v11 and up: `use` will do

  // v11 and up: ends with finalize. Older: the process's, never ends.
  bool has_finalize() const { return api_version >= 11; }

  const absl::flat_hash_set<Comm*>& comms() const { return comms_; }
  void Add(Comm* comm);
  // The comm's counters stay part of the statistics.
  void Remove(Comm* comm);
  ContextStatistics Statistics() const;
  // An object of it is gone. Before v11 a context never ends, but with the last user nothing of it is left.
  void Release(TransportUse user) const;
  // Why no peer of it need be waited for; OK: it has not failed.
  absl::Status Failure() const;
  // One line of INFO, where there was a connection; with logs_table as many more as it has rows.
  void LogStatistics() const;

 private:
  absl::flat_hash_set<Comm*> comms_;
  ContextStatistics closed_;  // `connections` counts open ones too
  Totals totals_;             // of closed ones, where statistics are asked for
};

// What a forked child is shown: nothing takes it, and it is never destroyed.
Context* RefusedContext();

// The contexts that there are, and whose logger the lines of no context go to.
// Lifetime: a context until Remove; v6 to v10's until the end.
class ContextTable {
 public:
  // For lines of no context. A null one does not replace what other contexts were given.
  void OfferLog(LogSink log) const;

  Context* Add(std::unique_ptr<Context> context);
  bool contains(Context* context) const { return contexts_.contains(context); }
  // Lines of no context go to a logger that is still in use.
  void Remove(Context* context);

  // A failure of the communicator's other connections ends this one, and vice versa; it takes over their traffic class.
  // Where several GPUs of this process are in it: of the one whose thread makes this one, as NCCL does.
  void JoinGroup(Context* context) const;
  // The process's of v6 to v10; null before the first.
  Context* legacy() const { return legacy_; }
  // True exactly when one uses v9 or a newer version.
  bool ShowsReceiveHint() const;
  // GPUs of this process, as far as contexts tell: those of v11 and up; 1 without any.
  int GpuCount() const;

 private:
  absl::flat_hash_map<Context*, std::unique_ptr<Context>> contexts_;
  Context* legacy_ = nullptr;
};

class ListenComm {
 public:
  Context* context = nullptr;
  std::shared_ptr<Listening> listening;
  Acceptor* acceptor = nullptr;
  TransportUse use;  // v11 and up: nobody's, the context's will do
};

// The listen comms and comms that NCCL holds: whose each one is, and that it uses the transport.
// Lifetime: an object until it is closed; a comm that never is stays as it is.
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
