// lane_shuffle.h: for tests: lanes are opened, moved and closed at random, all the time.
//
// Purpose: whatever a policy may order happens within seconds, and between any two bytes. One lane carries always.
//
// Threads: one at a time. Units: nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_PILOT_LANE_SHUFFLE_H_
#define TCPX_NET_SOCKET_PILOT_LANE_SHUFFLE_H_

#include <random>
#include <vector>

#include "net_socket/pilot/lane_policy.h"

namespace tcpx {

class LaneShuffle final : public LanePolicy {
 public:
  explicit LaneShuffle(const Settings& settings);

  bool Step(int64_t now_ns, const Look& look) override;
  std::vector<LaneOrder> TakeOrders() override;
  void Opened(int lane) override;
  void Refused(int lane) override;
  void Closed(int lane) override;
  bool carries(int lane) const override { return states_[static_cast<size_t>(lane)] == State::kCarries; }
  Found found() const override { return {}; }

 private:
  enum class State { kNone, kOpening, kCarries, kClosing };

  // A lane of that state; below 0: there is none.
  int AnyOf(State state);

  std::vector<State> states_;
  std::vector<LaneOrder> orders_;
  std::minstd_rand random_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PILOT_LANE_SHUFFLE_H_
