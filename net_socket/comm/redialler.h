// redialler.h: how the sending end of a connection gets other sockets for its lanes.
//
// Purpose: the seam to connect, which dials. A lane that was lost is dialled until it is there, or until its peer is
//          known to be gone; its connection hears of that: TakeSocket, or LaneGone (sender_healing.h). If the lane's
//          interface is out, LeavesPath is asked. A lane that uses another path than its own returns to that later:
//          LetsGo.
// Threads: the reactor. Lifetime: shared by its connection; may go anywhere after CloseInLoop. Errors: to LaneGone.
#pragma once

#include <cstdint>

#include "net_socket/engine/link.h"
#include "net_socket/engine/socket_swap.h"

namespace tcpx {

class SenderHealing;

enum class Handover { kTaken, kBusy, kRefused };

// A connection's end, as seen by the code that brings a new socket for a lane.
class SocketTaker {
 public:
  // Another socket for a lane. kBusy: not now, and `offer` is as it was; kRefused: never.
  virtual Handover TakeSocket(int lane, SocketOffer* offer) = 0;

 protected:
  ~SocketTaker() = default;
};

// Why a lane may change sockets although its own is open.
enum class LetGoWhy { kSilent, kReturns };

class Redialler {
 public:
  virtual ~Redialler() = default;

  // Before all others: the connection is up.
  virtual void StartInLoop(Link<SenderHealing> lanes, Link<SocketTaker> taker) = 0;
  // `records_taken`: bytes that this end has taken of the lane's reverse stream, modulo 2^32.
  virtual void RedialInLoop(int lane, uint32_t records_taken) = 0;
  // Nothing comes of the lane: dials another socket for it, and asks LetsGo once that is answered. The lane may go on.
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
