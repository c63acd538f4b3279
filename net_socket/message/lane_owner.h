// lane_owner.h: what a bulk lane knows of the connection that it belongs to.
//
// Purpose: a lane asks whether its connection has failed and tells it of its own end, and sees nothing else of it.
// Threads: any; two never move it at once. Lifetime: outlives its lanes.
// Errors:  FailLane: the first one sticks, later ones are dropped. LoseLane is asked first.
#pragma once

#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "common/dcheck.h"

namespace tcpx {

// Where a connection's end is in its life.
// States:  open -> failed (the first error sticks) -> closed; or open -> closed, the orderly end. If a lane ends
//          without a reason, the state is failing first: nothing is moved, and the error is reported once the reason
//          has come, or has not come in time.
enum class ConnectionState : uint8_t { kOpen, kFailing, kFailed, kClosed };

// A life only goes on: any later state may follow.
constexpr bool MayMove(ConnectionState from, ConnectionState to) { return to > from; }

class LaneOwner {
 public:
  // Asked for every chunk: no virtual call. False: no lane is to move anything more.
  bool open() const { return state() == ConnectionState::kOpen; }
  bool failed() const { return state() == ConnectionState::kFailed; }
  ConnectionState state() const { return state_.load(std::memory_order_acquire); }
  // `lane` can't continue, and so neither can the connection: it is no longer open. Never waits.
  virtual void FailLane(absl::Status status, int lane) = 0;
  // The socket of `lane` has broken. True: the lane gets another one, and keeps still until then.
  virtual bool LoseLane(const absl::Status& why, int lane) = 0;
  // It has got it.
  virtual void LaneBack(int lane) = 0;
  // The sender of `lane` has closed it. True: it keeps still until it gets another socket, as if lost.
  virtual bool CloseLane(int lane) = 0;
  // False: no lane that was lost gets another socket any more.
  virtual bool heals() const = 0;
  // True exactly when the peer has said, or shown, that it is gone: however a socket ends then, nothing is missing but
  // what it did not send.
  virtual bool peer_left() const = 0;

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
