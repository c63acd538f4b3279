#include "net_socket/pilot/lane_shuffle.h"

#include <algorithm>
#include <utility>

namespace tcpx {

LaneShuffle::LaneShuffle(const Settings& settings)
    : states_(static_cast<size_t>(settings.lanes_max), State::kNone),
      random_(static_cast<std::minstd_rand::result_type>(settings.seed)) {
  std::fill_n(states_.begin(), settings.lanes, State::kCarries);
}

int LaneShuffle::AnyOf(State state) {
  std::vector<int> those;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (states_[i] == state) those.push_back(static_cast<int>(i));
  }
  return those.empty() ? -1 : those[random_() % those.size()];
}

bool LaneShuffle::Step(int64_t, const Look&) {
  const auto carrying = std::count(states_.begin(), states_.end(), State::kCarries);
  const unsigned choice = random_() % 5;
  const auto kind = choice == 0  ? LaneOrder::Kind::kMove
                    : choice < 3 ? LaneOrder::Kind::kOpen
                                 : LaneOrder::Kind::kClose;
  const int lane = AnyOf(kind == LaneOrder::Kind::kOpen ? State::kNone : State::kCarries);
  if (lane < 0 || (kind == LaneOrder::Kind::kClose && carrying < 2)) return false;
  if (kind == LaneOrder::Kind::kOpen) states_[static_cast<size_t>(lane)] = State::kOpening;
  if (kind == LaneOrder::Kind::kClose) states_[static_cast<size_t>(lane)] = State::kClosing;
  orders_.push_back({kind, lane});
  return true;
}

std::vector<LaneOrder> LaneShuffle::TakeOrders() { return std::exchange(orders_, {}); }

void LaneShuffle::Opened(int lane) {
  State& state = states_[static_cast<size_t>(lane)];
  if (state == State::kOpening) state = State::kCarries;
}

void LaneShuffle::Refused(int lane) {
  State& state = states_[static_cast<size_t>(lane)];
  if (state == State::kOpening) state = State::kNone;
}

void LaneShuffle::Closed(int lane) {
  State& state = states_[static_cast<size_t>(lane)];
  if (state == State::kClosing) state = State::kNone;
}

}  // namespace tcpx
