// sender_healing.h: what a sending end does with lanes that are lost or suspected (docs/healing.md).
//
// Purpose: the sender dials. A lane that was lost is dialled until it is back; one that may be swallowed by the
//          network, or that the peer says it can't be heard on, has another socket tried in addition to its own, and
//          lets its own go only once that has found the peer.
// Threads: the reactor; the connection's link is held. PeerIsUnheard by the reader of the health socket.
// Lifetime: owned by its sending end. Units: nanoseconds of MonotonicNanos.
// Errors:  to the connection's failure, or to PeerLoss where nothing is under way or this end has said bye.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/lane_sockets.h"
#include "net_socket/comm/peer_watch.h"
#include "net_socket/comm/redialler.h"
#include "net_socket/comm/send_lanes.h"
#include "net_socket/engine/link.h"
#include "net_socket/message/flight.h"

namespace tcpx {

// What the parts of a sending end see of each other. Constant; all that it names outlives its holders.
struct SenderParts {
  const ConnectionSetup* setup = nullptr;
  const Tie* tie = nullptr;
  ConnectionFailure* failure = nullptr;
  SendLanes* lanes = nullptr;
  LaneSockets* sockets = nullptr;
  const ConnectionEnd* end = nullptr;
  PeerWatch* watch = nullptr;
  PeerLoss* loss = nullptr;

  // The connection is open, and a lane that is lost gets another socket.
  bool heals() const { return !failure->failed() && failure->heals(); }
  LaneHealing& healing() const { return failure->healing(); }
  // Stops reading the peer's records on a lane, and says how much of them came. False: what came is wrong.
  bool Freeze(int lane, uint32_t* records_taken) const {
    const auto taken = watch->FreezeInLoop(lane);
    if (taken.ok()) {
      *records_taken = *taken;
    } else {
      loss->Note(taken.status(), lane, false);
    }
    return taken.ok();
  }
};

class SenderHealing {
 public:
  explicit SenderHealing(const SenderParts& parts) : parts_(parts), self_(parts.tie->To(this)) {}

  // A lane has lost its socket.
  void LaneLostInLoop(int lane);
  // Looks for lanes that the network swallows; false: never again.
  bool LooksForSilenceInLoop(int64_t now_ns);
  // The receiver says that what it says on this lane is not acknowledged.
  void PeerIsUnheard(int lane);

  // For the code that dials. Its arbiter says when, and what a refusal means.
  LaneHealing& healing() const { return parts_.healing(); }
  // A socket in addition to a silent lane's, or by the lane's own path, has found the peer, and is to take its place:
  // true, unless the lane has moved. *records_taken: how much of the peer's records has come, modulo 2^32.
  bool LetsGo(int lane, LetGoWhy why, uint32_t* records_taken);
  // The interface by which a lane goes is out: it is lost, unless it was before.
  void LeavesPath(int lane, const absl::Status& why);
  // A lane that was to be opened gets no socket now.
  void LaneRefused(int lane) { parts_.lanes->rates().Refused(lane - 1); }
  // There is no other socket for a lane that was lost.
  void LaneGone(const absl::Status& status, int lane);

 private:
  void MovesUnheard(int lane);
  void Look(int lane, int64_t now_ns);
  // No other lane that is up can move this message.
  bool Needs(int lane, const Flight& flight) const;
  bool LetsSilentGo(int lane);

  const SenderParts parts_;
  StallWatch stall_;
  const Link<SenderHealing> self_;
};

}  // namespace tcpx
