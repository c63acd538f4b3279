// watchdog.h: housekeeping's round: every comm is looked at a few times within each timeout.
//
// Purpose: black holes and stalls are found by samples, so that a message costs no clock and no count of its own.
//
// Threads: InLoop: in the reactor.
// Units:   nanoseconds.
// Errors:  none. Without a comm there is no timer.
#ifndef TCPX_NET_SOCKET_HEALTH_WATCHDOG_H_
#define TCPX_NET_SOCKET_HEALTH_WATCHDOG_H_

#include <cstdint>
#include <memory>

#include "absl/container/flat_hash_set.h"
#include "common/params.h"
#include "net_socket/engine/reactor.h"
#include "net_socket/health/comm_link.h"

namespace tcpx {

class Watchdog {
 public:
  explicit Watchdog(Reactor* reactor) : reactor_(reactor) {}

  // Looks are this far apart: several within the peer timeout, a few within the time of a stall.
  static int64_t IntervalNs(const Options& options);

  void JoinInLoop(std::shared_ptr<CommLink> link, const Options& options);
  void LeaveInLoop(const std::shared_ptr<CommLink>& link);

 private:
  void RoundInLoop();

  Reactor* const reactor_;
  absl::flat_hash_set<std::shared_ptr<CommLink>> links_;
  int64_t interval_ns_ = 0;
  Reactor::TimerId timer_{0, 0};
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_HEALTH_WATCHDOG_H_
