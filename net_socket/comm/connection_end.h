// connection_end.h: one end of a connection, as its parts see it.
//
// Threads: as its functions say. Errors: none.
#pragma once

#include <cstdint>

#include "net_socket/message/flight.h"
#include "net_socket/seal/seals.h"

namespace tcpx {

class EndLanes;

enum class Direction : uint8_t { kSend, kReceive };

constexpr const char* DirectionName(Direction direction) { return direction == Direction::kSend ? "send" : "receive"; }

class ConnectionEnd {
 public:
  // Never null, once the end is made.
  virtual EndLanes* lanes() = 0;
  // What is under way. From any thread.
  virtual Flight FlightNow() const = 0;
  // That were reported done. From any thread.
  virtual uint64_t MessagesDone() const = 0;
  // The thread that calls it, as the kernel knows it; 0: not known. From any thread.
  virtual int CallerThread() const = 0;
  // A lane has its first socket. The comm's mutex is held. In the reactor.
  virtual void LaneOpened(int lane) = 0;
  // A lane goes on with another socket, or its first. What seals it, but for the half of the lane's mover, is in
  // `seals`; null: nothing. In the reactor.
  virtual void LaneResumed(int lane, Seals* seals) = 0;
  // A lane has lost its socket, and is to get another. In the reactor.
  virtual void LaneLost(int lane) = 0;
  // The peer is gone, and what is still to be sent does not arrive. As HealthUser's, and the next.
  virtual void PeerLeft() = 0;
  // Another socket is to be tried for the lane.
  virtual void PeerIsUnheard(int lane) = 0;

 protected:
  ~ConnectionEnd() = default;
};

}  // namespace tcpx
