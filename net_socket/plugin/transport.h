// transport.h: the runtime, and with it the acceptor and the dialler; and who uses them.
//
// Purpose: everything that has threads or sockets in one object, which runs exactly while someone uses the plugin. Each
//          user holds a TransportUse. The first one starts the transport; when the last one goes, it retires: its
//          sockets that linger are still served, and the next user starts another.
// Threads: under the plugin's mutex, the end of a TransportUse too; acceptor and dialler as their own headers say.
// States:  started -> retired (nothing new; sockets that linger are still served) -> joined.
// Errors:  Start: the local kernel's. Use: as Start, and kUnknown after End.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/address.h"
#include "common/cpu_plan.h"
#include "common/params.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/connect/acceptor.h"
#include "net_socket/connect/dial_lane.h"
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
  // What a connect asks its dial for: completes a request that has handle, device, communicator and traffic class by
  // address, path and lanes, which it holds of the runtime's budget. `host_mark`: the peer's; 0: not known.
  void PlanDial(uint64_t host_mark, DialRequest* request);

  // No comm is left: ends the pool, the acceptor and the dialler. Does not wait for sockets that linger.
  void Retire();
  // The same in a hurry, with comms left (exit, or an unload that NCCL never does): only the threads end.
  void Abandon();
  // Waits until lingering sockets are through (at most TCPX_LINGER) and the last thread has ended.
  void Join() { runtime_.reactor.Join(); }

 private:
  Transport(const Options& options, const Secret* secret)
      : runtime_(options), acceptor_(&runtime_, secret), dialler_(&runtime_, secret) {}
  absl::Status StartPool(const ThreadPlan& plan);
  bool IsLocal(const SocketAddress& address) const;
  void TakeLanes(DialRequest* request);
  void LeaveStats();

  Runtime runtime_;
  Acceptor acceptor_;
  Dialler dialler_;
  std::vector<SocketAddress> local_addresses_;
  bool serves_stats_ = false;
};

class TransportUsers;

// Someone uses the transport, until this ends; a copy is one more user. Users are: a v11+ context that has listened or
// connected, and, of older versions, each listen comm, unfinished connect and comm. Null: nobody.
using TransportUse = std::shared_ptr<TransportUsers>;

// Outlives every TransportUse.
class TransportUsers {
 public:
  using Starter = std::function<absl::StatusOr<std::unique_ptr<Transport>>()>;

  // `start` makes the transport where none runs.
  absl::StatusOr<TransportUse> Use(const Starter& start);
  // Null: nobody uses it.
  Transport* transport() const { return transport_.get(); }
  // Forgets the retired ones that are through. True exactly when none is left.
  bool ForgetEnded();
  // Hands out all retired ones, which hurry now. To let go of them waits until they are through: without the plugin's
  // mutex.
  std::vector<std::unique_ptr<Transport>> TakeRetired();
  // Ends all threads, within TCPX_LINGER; afterwards the transport gets no more users. `in_use`: comms, or threads of
  // the application, may still use it: it stays as it is, and this object with it.
  void End(bool in_use);

 private:
  void Retire();

  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Transport>> retired_;
  std::weak_ptr<TransportUsers> use_;  // what the users hold
  bool ended_ = false;
};

}  // namespace tcpx
