// dial_allowance.h: how many sockets a connection may still dial to find its number of lanes.
//
// Purpose: whatever a network looks like, and however wrong the pilot judges it, dials stay few: some at once, to find the
//          number at the start, then few a minute. Pure.
//
// Threads: one at a time. Units: nanoseconds.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_SEND_DIAL_ALLOWANCE_H_
#define TCPX_NET_SOCKET_SEND_DIAL_ALLOWANCE_H_

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace tcpx {

class DialAllowance {
 public:
  // At once, and each minute. With half of it one of two connections on the same eight paths ran out first, and its
  // part was two thirds of what is fair.
  static constexpr int kMost = 128;
  static constexpr int kEachMinute = 8;

  void Pass(int64_t ns) {
    left_ = std::min<double>(kMost, left_ + kEachMinute * static_cast<double>(ns) / (60.0 * kSecond));
  }
  int left() const { return static_cast<int>(left_); }
  void Take(int dials) { left_ -= dials; }

 private:
  double left_ = kMost;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEND_DIAL_ALLOWANCE_H_
