// connection.h: one simulated connection: the plugin's own classes decide what its lanes do, the fabric what they get.
//
// Purpose: LaneRates (with LanePilot in it), LaneRate, LaneBudget, BusyLanes, LanesFor and Striper are those that ship.
//          This class is the kernel and the network to them: it dials at random ports, counts what is acknowledged, and
//          says which lanes hold data.
// Threads: one at a time. Units: bytes, seconds where a name has no other, bytes per second.
// Lifetime: borrows process and topology. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/fabric/max_min.h"
#include "bench/fabric/topology.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/send/busy_lanes.h"
#include "net_socket/send/lane_rates.h"

namespace tcpx {
namespace fabric {

// What the connections of one process share.
struct Process {
  LaneBudget budget;
  BusyLanes busy;
};

// Who decides: the autopilot, a fixed number of lanes, or NCCL's Socket, which cuts each message into equal parts.
struct Policy {
  enum class Kind { kPilot, kFixed, kEqualParts };
  Kind kind = Kind::kPilot;
  int lanes = 0;  // kPilot: 0 for what the plugin begins with
};

class Connection {
 public:
  struct Ends {
    int from = 0;
    int to = 1;
    int rail = 0;
  };

  // `limiter`: a link of its own, which holds it to what its collective wants.
  Connection(const Ends& ends, const Policy& policy, uint64_t seed, int limiter, Process* process,
             const Topology* topology);

  // A round of shares: its flows, with so much room beyond the rate that it goes on at, and what they came to. `last`:
  // no further round changes them.
  void AddFlows(double room, std::vector<Flow>* flows);
  void TakeShares(const std::vector<Flow>& flows, bool last = true);
  // What it can bring, as of TakeShares.
  double capacity() const { return capacity_; }
  // It goes on at `rate`, which is at most that.
  void Settle(double rate) { rate_ = rate; }
  double rate() const { return rate_; }
  int limiter() const { return limiter_; }

  // For so long, times `noise`.
  void Move(double seconds, double noise);
  // The plugin looks at its lanes. True where another lane carries than before. `freeze`: the pilot does nothing any
  // more, once it tries nothing.
  bool Look(int64_t now_ns, bool freeze);
  // How long the last chunk of a message goes on alone, on average.
  double Tail(double bytes) const;
  // How lucky its flows are.
  void SetLuck(uint64_t draw, double sigma);

  bool active = false;  // has data

  int sockets() const { return static_cast<int>(open_lanes_.size()); }
  int64_t dials() const { return dials_; }  // after the first ones
  int from() const { return ends_.from; }
  bool equal_parts() const { return kind_ == Policy::Kind::kEqualParts; }

 private:
  struct Lane {
    bool open = false;
    bool full = false;
    bool came = false;  // dialled, and not reported yet
    uint32_t busy_span = 0;
    Flow route;  // with its luck as its weight
    double rate = 0;
    double acked = 0;
    LanePolicy::RoundTrips round_trips;
    LaneRate pace{64 << 10};
  };

  LaneRates::Settings RatesFor(const Policy& policy, uint64_t seed);
  int FirstLanes(const Policy& policy) const;
  void Dial(size_t lane);
  void DrawLuck(size_t lane);
  void See(const Flow& flow, bool last, LanePolicy::RoundTrips* round_trips) const;
  void CarryOut(const LaneOrder& order);
  bool Tries() const;
  bool Flows(size_t lane) const { return lanes_[lane].open && rates_.Carries(static_cast<int>(lane)); }

  const Ends ends_;
  const Policy::Kind kind_;
  const uint64_t seed_;
  const int limiter_;
  Process* const process_;
  const Topology* const topology_;
  OpenLanes open_;
  std::vector<size_t> open_lanes_;
  uint64_t luck_ = 0;
  double sigma_ = 0;  // 0: all flows are equally lucky
  bool ordered_ = false;
  bool frozen_ = false;
  int64_t now_ns_ = 0;
  int64_t opened_ns_ = 0;  // a lane, last
  LaneRates rates_;
  std::vector<Lane> lanes_;
  size_t first_flow_ = 0;
  double capacity_ = 0;
  double rate_ = kUnlimited;
  int64_t dials_ = 0;
};

}  // namespace fabric
}  // namespace tcpx
