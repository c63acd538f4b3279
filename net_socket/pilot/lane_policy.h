// lane_policy.h: what a connection asks about its bulk lanes: which carry, and which are to be opened, moved or closed.
//
// Threads: one at a time. Units: bytes, nanoseconds, and microseconds where a name says so. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

namespace tcpx {

struct LaneOrder {
  enum class Kind { kOpen, kMove, kClose };
  Kind kind = Kind::kOpen;
  int lane = 0;
};

class LanePolicy {
 public:
  struct Settings {
    int lanes = 1;         // at the beginning
    int lanes_max = 1;     // including those that may be opened
    bool piloted = false;  // whether lanes may be opened
    uint64_t seed = 0;
  };
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

  virtual ~LanePolicy() = default;

  // To be called about every tuning::kStepNs while data is under way. True exactly when `carries` has changed, or there
  // are orders.
  virtual bool Step(int64_t now_ns, const Look& look) = 0;
  // Each order is to be carried out once; the owner reports the result by the calls below. An order that fails may be
  // given again.
  virtual std::vector<LaneOrder> TakeOrders() = 0;
  // The lane has a socket: its first, or another one.
  virtual void Opened(int lane) = 0;
  virtual void Refused(int lane) = 0;
  virtual void Closed(int lane) = 0;
  virtual bool carries(int lane) const = 0;
  virtual Found found() const = 0;
};

}  // namespace tcpx
