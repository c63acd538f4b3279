// transport.h: the runtime, and with it the acceptor and the dialler.
//
// Purpose: everything that has threads or sockets in one object, which exists only while someone uses the plugin.
// Threads: Start, Retire and Join by the plugin, one at a time; acceptor and dialler as their own headers say.
// States:  started -> retired (nothing new; sockets that linger are still served) -> joined.
// Errors:  Start: the local kernel's.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/cpu_plan.h"
#include "common/params.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/connect/acceptor.h"
#include "net_socket/connect/dialler.h"

namespace tcpx {

class Transport {
 public:
  // All that it borrows outlives it. `secret`: null where none is shared. `gpu`: null for host memory only.
  static absl::StatusOr<std::unique_ptr<Transport>> Start(const Options& options, const ThreadPlan& plan,
                                                          const Secret* secret, LaneNotes* notes,
                                                          std::unique_ptr<GpuHub> gpu);
  // Statistics are asked for; before the first comm.
  void Serve(StatsHub* stats);
  // Joins what still runs.
  ~Transport();

  Runtime& runtime() { return runtime_; }
  Acceptor& acceptor() { return acceptor_; }
  Dialler& dialler() { return dialler_; }
  bool IsLocal(const SocketAddress& address) const;

  // No comm is left: ends the pool, the acceptor and the dialler. Does not wait for sockets that linger.
  void Retire();
  // The same in a hurry, with comms left (exit, or an unload that NCCL never does): only the threads end.
  void Abandon();
  // Waits until lingering sockets are through (at most TCPX_LINGER) and the last thread has ended.
  void Join() { runtime_.reactor.Join(); }

 private:
  Transport(const Options& options, const Secret* secret, LaneNotes* notes, std::unique_ptr<GpuHub> gpu);
  absl::Status StartPool(const ThreadPlan& plan);
  void LeaveStats();

  Runtime runtime_;
  Acceptor acceptor_;
  Dialler dialler_;
  std::vector<SocketAddress> local_addresses_;
  bool serves_stats_ = false;
};

}  // namespace tcpx
