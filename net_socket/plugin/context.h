// context.h: what a context keeps: its settings, what it has open, and what its connections have moved.
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
#include "nccl/plugin_api.h"
#include "net_socket/comm/comm.h"
#include "net_socket/comm/communicator.h"
#include "net_socket/plugin/transport_users.h"
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
  const bool one_sided;  // of an RMA table: one more of a rank that has the net table's
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

}  // namespace tcpx
