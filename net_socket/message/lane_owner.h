// lane_owner.h: what a bulk lane knows of the connection that it belongs to.
//
// Purpose: a lane asks whether its connection has failed and tells it of its own end, and sees nothing else of it.
//
// Threads: any; two never move it at once.
// Lifetime: outlives its lanes.
// Errors:  FailLane: the first one sticks, later ones are dropped.
#ifndef TCPX_NET_SOCKET_MESSAGE_LANE_OWNER_H_
#define TCPX_NET_SOCKET_MESSAGE_LANE_OWNER_H_

#include <atomic>

#include "absl/status/status.h"
#include "common/dcheck.h"
#include "net_socket/message/connection_state.h"

namespace tcpx {

class LaneOwner {
 public:
  // Asked for every chunk: no virtual call.
  bool failed() const { return state() == ConnectionState::kFailed; }
  ConnectionState state() const { return state_.load(std::memory_order_acquire); }
  // `lane` can't go on, and with it the connection.
  virtual void FailLane(absl::Status status, int lane) = 0;

 protected:
  ~LaneOwner() = default;
  void MoveTo(ConnectionState next) {
    TCPX_DCHECK(MayMove(state(), next));
    state_.store(next, std::memory_order_release);
  }

 private:
  std::atomic<ConnectionState> state_{ConnectionState::kOpen};
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_MESSAGE_LANE_OWNER_H_
