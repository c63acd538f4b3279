// dial_allowance.h: how many sockets a connection may still dial to find its number of lanes.
//
// Purpose: whatever a network looks like, and however wrong the pilot judges it, dials stay few: some at once, to find the
//          number at the start, then few a minute. Pure.
//
// Threads: one at a time. Units: nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_PILOT_DIAL_ALLOWANCE_H_
#define TCPX_NET_SOCKET_PILOT_DIAL_ALLOWANCE_H_

#include <algorithm>
#include <cstdint>

#include "common/clock.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {

class DialAllowance {
 public:
  void Pass(int64_t now_ns) {
    const double minutes = static_cast<double>(now_ns - last_ns_) / (60.0 * kSecond);
    left_ = std::min<double>(tuning::kDialsAtOnce, left_ + tuning::kDialsEachMinute * minutes);
    last_ns_ = now_ns;
  }
  int left() const { return static_cast<int>(left_); }
  void Take(int dials) { left_ -= dials; }

 private:
  double left_ = tuning::kDialsAtOnce;
  int64_t last_ns_ = 0;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PILOT_DIAL_ALLOWANCE_H_
