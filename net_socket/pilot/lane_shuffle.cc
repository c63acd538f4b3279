#include "net_socket/pilot/lane_shuffle.h"

namespace tcpx {

bool LaneShuffle::Step(int64_t, const Look&) {
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

}  // namespace tcpx
