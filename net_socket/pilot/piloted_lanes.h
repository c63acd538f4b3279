// piloted_lanes.h: what the pilot knows of each lane, and what it has ordered.
//
// Purpose: the one place where a lane's state in a policy changes together with an order. It limits dials,
//          however wrong the pilot judges a network: some at once, to find the number at the start, then a few each
//          minute. If lanes can't be opened and closed, a dropped one is paused, and there are no orders. Pure.
// Threads: one at a time. Units: nanoseconds. Errors: none.
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

  explicit PilotedLanes(const Settings& settings);

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
  void Move(int lane);
  void Drop(int lane) { piloted_ ? Order(LaneOrder::Kind::kClose, lane) : Set(lane, State::kPaused); }
  // Takes back that a lane was opened, or made to carry.
  void GiveBack(int lane);
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

}  // namespace tcpx
