// redialler.h: how the sending end of a connection gets other sockets for its lanes.
//
// Purpose: the seam to connect, which dials. A lane that was lost is dialled until it is there, or until its peer is
//          known to be gone; its connection hears of that: TakeSocket, or LaneGone. If the lane's interface is
//          out, LeavesPath is asked. A lane that uses another path than its own returns to that later: LetsGo.
// Threads: the reactor. Lifetime: shared by its connection; may go anywhere after CloseInLoop. Errors: to LaneGone.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "net_socket/engine/link.h"
#include "net_socket/engine/socket_swap.h"

namespace tcpx {

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

// The lanes of a connection, as seen by the code that dials for them.
class RedialledLanes {
 public:
  // A socket in addition to a silent lane's, or by the lane's own path, has found the peer, and is to take its place:
  // true, unless the lane has moved. *records_taken: how much of the peer's records has come, modulo 2^32.
  virtual bool LetsGo(int lane, LetGoWhy why, uint32_t* records_taken) = 0;
  // The interface by which a lane goes is out: it is lost, unless it was before.
  virtual void LeavesPath(int lane, const absl::Status& why) = 0;
  // True exactly when no lane has been up for too long.
  virtual bool LanesOverdue() = 0;
  // 0: the lane may be dialled now, and is. Else when to ask again.
  virtual int64_t TakeFirstDial(int lane) = 0;
  // The same of a dial that follows. `first`: the first by another path.
  virtual int64_t TakeDialTurn(int lane, bool first) = 0;
  // A dial was refused. `up`: a socket of the peer's process is up. True: that process is gone.
  virtual bool DialRefused(bool up) = 0;
  // A dial has come to something else.
  virtual void DialNotRefused(bool reached) = 0;
  // A lane that was to be opened gets no socket now.
  virtual void LaneRefused(int lane) = 0;
  // There is no other socket for a lane that was lost.
  virtual void LaneGone(const absl::Status& status, int lane) = 0;

 protected:
  ~RedialledLanes() = default;
};

class Redialler {
 public:
  virtual ~Redialler() = default;

  // Before all others: the connection is up.
  virtual void StartInLoop(Link<RedialledLanes> lanes, Link<SocketTaker> taker) = 0;
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
