// end_lanes.h: the lanes of one end of a connection, for parts that work in both directions.
//
// Threads: as its functions say.
// Errors:  Replace.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "net_socket/engine/progress_pool.h"
#include "net_socket/message/lane_counts.h"

namespace tcpx {

class EndLanes {
 public:
  // What a progress thread moves; null: the calling thread moves the lane. In the reactor.
  PoolLane* pool_lane(int lane) const { return lane == 0 || caller_driven_ ? nullptr : Mover(lane); }
  bool caller_driven() const { return caller_driven_; }
  // Makes what moves a bulk lane that has its first socket. Under the comm's mutex.
  virtual void Make(int lane) = 0;
  // Gives a lane that the calling thread moves another socket. Not OK: it can't have it. The same.
  virtual absl::Status Replace(int lane, SocketOffer offer) = 0;
  // What a lane has moved; null: it never had a socket. From any thread.
  virtual const LaneCounts* counts(int lane) const = 0;
  // Bytes per second; 0: not known, or the lane does not send. From any thread.
  virtual int64_t pace(int lane) const = 0;
  // The lane has read what nobody has passed on: it lies here as what the kernel has. From any thread.
  virtual bool holds(int lane) const = 0;

 protected:
  explicit EndLanes(bool caller_driven) : caller_driven_(caller_driven) {}
  ~EndLanes() = default;
  // What moves a bulk lane; null: the lane never had a socket.
  virtual PoolLane* Mover(int lane) const = 0;

 private:
  const bool caller_driven_;  // there is no progress pool
};

}  // namespace tcpx
