// lane_mover.h: gives a lane of a connection its next socket.
//
// Threads: the reactor; the connection's link is held.
#ifndef TCPX_NET_SOCKET_COMM_LANE_MOVER_H_
#define TCPX_NET_SOCKET_COMM_LANE_MOVER_H_

#include "net_socket/engine/socket_swap.h"

namespace tcpx {

class LaneMover {
 public:
  // A lane of a progress thread takes `offer` soon, another one now.
  virtual Handover HandOver(int lane, SocketOffer* offer) = 0;

 protected:
  ~LaneMover() = default;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_LANE_MOVER_H_
