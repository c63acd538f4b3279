// progress_check.h: housekeeping's three looks at a connection: its lanes, its requests, the paces of its lanes.
//
// Purpose: a lane that nobody answers fails the connection (lane_liveness.h), as do requests that stall while the
//          peer has ended; requests that only stall, and lanes that are slow for long, are reported in the log.
// Threads: the reactor; PeerEnded and slow_lanes from any. Lifetime: borrows all three, which outlive it.
// Units: nanoseconds of MonotonicNanos. Errors: to the connection's failure.
#pragma once

#include <atomic>
#include <cstdint>

#include "net_socket/comm/connection_end.h"
#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/stall_probe.h"
#include "net_socket/health/slow_lanes.h"
#include "net_socket/health/watchdog.h"
#include "net_socket/message/flight.h"

namespace tcpx {

class ProgressCheck {
 public:
  ProgressCheck(const ConnectionSetup* setup, ConnectionEnd* end, ConnectionFailure* failure)
      : setup_(setup), end_(end), failure_(failure), probe_(setup, end, failure) {}

  Watchdog::Next LookInLoop(int64_t now_ns);
  // A lane's socket holds what was not acknowledged.
  bool AnyQueued() const;
  StallProbe& probe() { return probe_; }
  const StallProbe& probe() const { return probe_; }
  // What is slow although nothing stalls, as far as it was logged lately; kNone: nothing.
  const Verdict& slow() const { return slow_; }
  // The peer's process has ended without closing.
  void PeerEnded() { peer_ended_.store(true, std::memory_order_relaxed); }
  // How often a lane became slow for long.
  uint64_t slow_lanes() const { return slow_lanes_; }

 private:
  void LookAtLanes(int64_t now_ns);
  void LookAtRequests(const Flight& flight, int64_t now_ns);
  void LogStall(int64_t now_ns);
  void LookAtPaces(int64_t now_ns);
  void LookAtLosses(int64_t now_ns);
  void LookAtCpu(const Flight& flight, int64_t now_ns);
  Verdict PaceVerdict(size_t lane, bool slow) const;
  void NoteSlow(const Verdict& verdict, int64_t now_ns);

  const ConnectionSetup* const setup_;
  ConnectionEnd* const end_;
  ConnectionFailure* const failure_;
  std::atomic<bool> peer_ended_{false};
  SlowLanes slowness_;
  LaneLosses losses_;
  int64_t short_since_ns_ = 0;  // of CPU; 0: not
  bool logged_short_ = false;
  uint64_t messages_done_ = 0;  // at the latest look
  StallWatch stall_;
  StallProbe probe_;
  Relaxed<uint64_t> slow_lanes_{0};
  Verdict slow_;
  int64_t slow_ns_ = 0;  // when it was last found so
};

}  // namespace tcpx
