// lane_shuffle.h: for tests: lanes are opened, moved and closed at random, all the time.
//
// Purpose: whatever a policy may order happens within seconds, and between any two bytes. One lane carries always.
// Threads: one at a time. Units: nanoseconds. Errors: none.
#pragma once

#include <random>

#include "net_socket/pilot/lane_policy.h"

namespace tcpx {

class LaneShuffle final : public LanePolicy {
 public:
  explicit LaneShuffle(const Settings& settings)
      : LanePolicy(settings), random_(static_cast<std::minstd_rand::result_type>(settings.seed)) {}

  bool Step(int64_t, const Look&) override {
    using Kind = LaneOrder::Kind;
    using State = PilotedLanes::State;
    const unsigned choice = random_() % 5;
    const Kind kind = choice == 0 ? Kind::kMove : choice < 3 ? Kind::kOpen : Kind::kClose;
    const PilotedLanes::Lanes those = lanes_.Those(kind == Kind::kOpen ? State::kNone : State::kCarries);
    if (those.empty()) return false;
    const int lane = those[random_() % those.size()];
    if (kind == Kind::kClose && lanes_.carrying() < 2) return false;
    lanes_.Order(kind, lane);
    return true;
  }
  void Opened(int lane) override { (void)lanes_.Opened(lane); }
  Found found() const override { return {}; }

 private:
  std::minstd_rand random_;
};

}  // namespace tcpx
