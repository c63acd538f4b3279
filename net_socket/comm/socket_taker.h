// socket_taker.h: a connection's end, as it is seen by those who bring other sockets for its lanes.
//
// Threads: the reactor.
// Errors:  kRefused.
#ifndef TCPX_NET_SOCKET_COMM_SOCKET_TAKER_H_
#define TCPX_NET_SOCKET_COMM_SOCKET_TAKER_H_

#include "net_socket/engine/socket_swap.h"

namespace tcpx {

enum class Handover { kTaken, kBusy, kRefused };

class SocketTaker {
 public:
  // Another socket for a lane. kBusy: not now, and `offer` is as it was; kRefused: never.
  virtual Handover TakeSocket(int lane, SocketOffer* offer) = 0;

 protected:
  ~SocketTaker() = default;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_SOCKET_TAKER_H_
