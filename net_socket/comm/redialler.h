// redialler.h: how the sending end of a connection gets other sockets for its lanes.
//
// Purpose: the seam to connect, which dials. A lane that was lost is dialled until it is there, or until its peer is
//          known to be gone; its connection hears of that through its link: TakeSocket, or LaneGone. One whose interface
//          is out has Watched::LeavesPath asked, and one that goes another way than its own returns to it: LetsGo.
//
// Threads: the reactor.
// Lifetime: shared by its connection; may go anywhere behind CloseInLoop.
// Errors:  to LaneGone.
#ifndef TCPX_NET_SOCKET_COMM_REDIALLER_H_
#define TCPX_NET_SOCKET_COMM_REDIALLER_H_

#include <cstdint>
#include <memory>

#include "net_socket/health/comm_link.h"

namespace tcpx {

class Redialler {
 public:
  virtual ~Redialler() = default;

  // Before all others: the connection stands.
  virtual void StartInLoop(std::shared_ptr<CommLink> link) = 0;
  // `records_taken`: bytes that this end has taken of the lane's reverse stream, modulo 2^32.
  virtual void RedialInLoop(int lane, uint32_t records_taken) = 0;
  // Nothing comes of the lane: dials beside it, and asks Watched::LetsGo once that is answered. The lane may go on.
  virtual void TryBesideInLoop(int lane) = 0;
  // The lane has no socket: dials one, for a while only. It may come to nothing: LaneRefused.
  virtual void OpenInLoop(int lane) = 0;
  // The lane is closed: it wants no other socket, and waits for no path.
  virtual void ClosedInLoop(int lane) = 0;
  // Sockets that were dialled in place of others so far, whatever came of them. From any thread.
  virtual uint64_t dialled() const = 0;
  // Gives up what is being dialled.
  virtual void CloseInLoop() = 0;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_COMM_REDIALLER_H_
