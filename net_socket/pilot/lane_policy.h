// lane_policy.h: what a connection asks about its bulk lanes: which carry, and which are to be opened, moved or closed.
// And what a policy knows of each lane, and has ordered.
//
// Purpose: PilotedLanes is the one place where a lane's state in a policy changes together with an order. It limits
//          dials, however wrong the pilot judges a network: some at once, to find the number at the start, then a few
//          each minute. If lanes can't be opened and closed, a dropped one is paused, and there are no orders. Pure.
// Threads: one at a time. Units: bytes, nanoseconds, and microseconds where a name says so. Errors: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "net_socket/pilot/tuning.h"

namespace tcpx {

struct LaneOrder {
  enum class Kind { kOpen, kMove, kClose };
  Kind kind = Kind::kOpen;
  int lane = 0;
};

class PilotedLanes {
 public:
  struct Settings {
    int lanes = 1;         // at the beginning
    int lanes_max = 1;     // including those that may be opened
    bool piloted = false;  // whether lanes may be opened
    uint64_t seed = 0;
  };
  // kPaused: has a socket, and may carry again. kLame: paused for its slowness.
  enum class State : uint8_t { kNone, kOpening, kCarries, kPaused, kLame, kClosing };
  using Lanes = std::vector<int>;

  explicit PilotedLanes(const Settings& settings)
      : piloted_(settings.piloted), states_(static_cast<size_t>(settings.lanes_max), State::kNone) {
    std::fill_n(states_.begin(), settings.lanes, State::kCarries);
  }

  State state(int lane) const { return states_[static_cast<size_t>(lane)]; }
  bool carries(int lane) const { return state(lane) == State::kCarries; }
  Lanes Those(State state) const;
  int carrying() const { return static_cast<int>(std::count(states_.begin(), states_.end(), State::kCarries)); }

  // Sets a lane's state without an order.
  void Set(int lane, State state) { states_[static_cast<size_t>(lane)] = state; }
  void Set(const Lanes& lanes, State state) {
    for (int lane : lanes) Set(lane, state);
  }

  // Adds an order, without asking how many dials are left, and sets the state that follows from it.
  void Order(LaneOrder::Kind kind, int lane);
  // Orders up to `wanted` lanes, and none where fewer than `least` may be dialled. Returns those that it ordered.
  Lanes Open(int wanted, int least);
  // Another socket for a lane, if one may be dialled.
  void Move(int lane) {
    if (!piloted_ || dials() <= 0) return;
    --dials_;
    Order(LaneOrder::Kind::kMove, lane);
  }
  void Drop(int lane) { piloted_ ? Order(LaneOrder::Kind::kClose, lane) : Set(lane, State::kPaused); }
  // Takes back that a lane was opened, or made to carry.
  void GiveBack(int lane) {
    if (state(lane) == State::kOpening) return Set(lane, State::kNone);  // It may still come, and is closed then.
    if (carries(lane) || state(lane) == State::kLame) Drop(lane);
  }
  // Makes one lane carry if none does. True: it had to.
  bool KeepOne();
  std::vector<LaneOrder> TakeOrders() { return std::exchange(orders_, {}); }

  // What came of the orders. Opened returns the state before.
  State Opened(int lane);
  void Refused(int lane) {
    if (state(lane) == State::kOpening) Set(lane, State::kNone);
  }
  void Closed(int lane) {
    if (state(lane) == State::kClosing) Set(lane, State::kNone);
  }
  // Time passes, and so more may be dialled.
  void Pass(int64_t now_ns);

 private:
  int dials() const { return static_cast<int>(dials_); }

  const bool piloted_;
  std::vector<State> states_;
  std::vector<LaneOrder> orders_;
  double dials_ = tuning::kDialsAtOnce;  // dials that are left
  int64_t passed_ns_ = 0;
};

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
