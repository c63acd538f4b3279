// dials_again.h: the patience with which the sockets of an established connection are dialled again.
//
// Threads: one at a time.
// Units:   nanoseconds of MonotonicNanos.
// Errors:  none.
#ifndef TCPX_NET_SOCKET_CONNECT_DIALS_AGAIN_H_
#define TCPX_NET_SOCKET_CONNECT_DIALS_AGAIN_H_

#include <algorithm>
#include <cstdint>

#include "net_socket/connect/tuning.h"

namespace tcpx {

// When the next dial begins. A socket that dies as soon as it is up is not dialled as fast as that happens. `began_ns`:
// the dial before; 0: there was none.
inline int64_t DialAgainAtNs(int64_t now_ns, int64_t began_ns) {
  return began_ns == 0 ? now_ns : std::max(now_ns, began_ns + tuning::kBetweenDialsNs);
}

// Whether a port that refuses is believed, whose process seems to live: something on the way that resets flows refuses
// too.
class Refusals {
 public:
  // One more. True: nothing else has come for long enough.
  bool Believed(int64_t now_ns) {
    if (since_ns_ == 0) since_ns_ = now_ns;
    return now_ns - since_ns_ >= tuning::kRefusedNs;
  }
  // Something else has come.
  void Forget() { since_ns_ = 0; }

 private:
  int64_t since_ns_ = 0;  // 0: none
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_CONNECT_DIALS_AGAIN_H_
