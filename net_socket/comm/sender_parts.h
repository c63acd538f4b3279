// sender_parts.h: what the parts of a sending end see of each other.
//
// Threads: plain data, constant. Lifetime: all of them outlive the holders of this.
#pragma once

#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/lane_healing.h"
#include "net_socket/comm/lane_sockets.h"
#include "net_socket/comm/peer_watch.h"
#include "net_socket/comm/send_lanes.h"
#include "net_socket/engine/link.h"

namespace tcpx {

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

}  // namespace tcpx
