// connection_end.h: one end of a connection, as its failure and its progress check see it.
//
// Threads: as its functions say. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "net_socket/health/slow_lanes.h"
#include "net_socket/message/flight.h"

namespace tcpx {

enum class Direction : uint8_t { kSend, kReceive };

constexpr const char* DirectionName(Direction direction) { return direction == Direction::kSend ? "send" : "receive"; }

enum class Unread : uint8_t {
  kNothing,
  kHeld,    // it was read, and nobody has passed it on: it lies here as what the kernel has
  kParked,  // bytes of a message without a receive: they wait for that, or for what the peer has left out
};

class ConnectionEnd {
 public:
  // What is under way. From any thread.
  virtual Flight FlightNow() const = 0;
  // The pace of the lanes that carry bulk messages, by lane index from 1 on; empty where there is none to compare. In
  // the reactor.
  virtual std::vector<LanePace> Paces() const = 0;
  // That were reported done. From any thread.
  virtual uint64_t MessagesDone() const = 0;
  // The thread that calls it, as the kernel knows it; 0: not known. From any thread.
  virtual int CallerThread() const = 0;
  // True once a lane of the peer's has ended in order: nothing more comes on it. From any thread.
  virtual bool LaneEnded() const = 0;
  // What the lane has of what came. From any thread.
  virtual Unread UnreadOf(int lane) const = 0;
  // Lets the peer learn of a failure at once. From any thread.
  virtual void TellPeer(const absl::Status& status) = 0;

 protected:
  ~ConnectionEnd() = default;
};

}  // namespace tcpx
