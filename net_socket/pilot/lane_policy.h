// lane_policy.h: what a connection asks about its bulk lanes: which carry, and which are to be opened, moved or closed.
//
// Threads: one at a time. Units: bytes, nanoseconds, and microseconds where a name says so. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "net_socket/pilot/piloted_lanes.h"

namespace tcpx {

class LanePolicy {
 public:
  using Settings = PilotedLanes::Settings;
  // The round trips of a lane's socket. [us]
  struct RoundTrips {
    int64_t now_us = 0;    // smoothed; 0: not known
    int64_t least_us = 0;  // ever; 0: not known
  };
  // What is known at one step.
  struct Look {
    const std::vector<uint64_t>& acked;                    // by lane: what the peer has acknowledged so far
    bool limited = true;                                   // the network is the limit: neither the peer nor this end
    int may_open = 1 << 20;                                // how many lanes the process's limits allow
    const std::vector<bool>* dry = nullptr;                // by lane: it holds nothing; null: each holds something
    const std::vector<RoundTrips>* round_trips = nullptr;  // by lane; null: not known
    uint64_t all = 0;                                      // what the process's connections brought; 0: unknown
  };
  // What was learnt of a network.
  struct Found {
    int lanes = 0;  // 0: nothing yet
    double bytes_per_second = 0;
  };

  explicit LanePolicy(const Settings& settings) : lanes_(settings) {}
  virtual ~LanePolicy() = default;

  // To be called about every tuning::kStepNs while data is under way. True exactly when `carries` has changed, or there
  // are orders.
  virtual bool Step(int64_t now_ns, const Look& look) = 0;
  // Each order is to be carried out once; the owner reports the result by the calls below. An order that fails may be
  // given again.
  std::vector<LaneOrder> TakeOrders() { return lanes_.TakeOrders(); }
  // The lane has a socket: its first, or another one.
  virtual void Opened(int lane) = 0;
  void Refused(int lane) { lanes_.Refused(lane); }
  void Closed(int lane) { lanes_.Closed(lane); }
  bool carries(int lane) const { return lanes_.carries(lane); }
  // As of when nothing was left to try.
  const Found& found() const { return found_; }

 protected:
  PilotedLanes lanes_;
  Found found_;
};

}  // namespace tcpx
