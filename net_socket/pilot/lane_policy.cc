#include "net_socket/pilot/lane_policy.h"

#include <iterator>

#include "common/clock.h"

namespace tcpx {

PilotedLanes::Lanes PilotedLanes::Those(State wanted) const {
  Lanes found;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == wanted) found.push_back(static_cast<int>(i));
  }
  return found;
}

void PilotedLanes::Order(LaneOrder::Kind kind, int lane) {
  if (kind == LaneOrder::Kind::kOpen) Set(lane, State::kOpening);
  if (kind == LaneOrder::Kind::kClose) Set(lane, State::kClosing);
  orders_.push_back({kind, lane});
}

PilotedLanes::Lanes PilotedLanes::Open(int wanted, int least) {
  Lanes opened;
  if (!piloted_ || dials() < std::min(wanted, least)) return opened;
  wanted = std::min(wanted, dials());
  for (int lane : Those(State::kNone)) {
    if (wanted-- <= 0) break;
    Order(LaneOrder::Kind::kOpen, lane);
    opened.push_back(lane);
    --dials_;
  }
  return opened;
}

bool PilotedLanes::KeepOne() {
  if (carrying() > 0) return false;
  for (const State paused : {State::kLame, State::kPaused}) Set(Those(paused), State::kCarries);
  if (carrying() > 0) return true;
  // The last one was given up just now: nobody has carried that out yet.
  const auto last = std::find_if(orders_.rbegin(), orders_.rend(),
                                 [](const LaneOrder& order) { return order.kind == LaneOrder::Kind::kClose; });
  if (last == orders_.rend()) return false;
  Set(last->lane, State::kCarries);
  orders_.erase(std::next(last).base());
  return true;
}

void PilotedLanes::Pass(int64_t now_ns) {
  const double minutes = static_cast<double>(now_ns - passed_ns_) / (60.0 * kSecond);
  dials_ = std::min<double>(tuning::kDialsAtOnce, dials_ + tuning::kDialsEachMinute * minutes);
  passed_ns_ = now_ns;
}

PilotedLanes::State PilotedLanes::Opened(int lane) {
  const State before = state(lane);
  if (before == State::kOpening) Set(lane, State::kCarries);
  if (before == State::kNone) Drop(lane);  // Too late.
  return before;
}

}  // namespace tcpx
