// lane_steering.h: carries out what the autopilot orders: lanes that are opened, moved and closed.
//
// Purpose: the pilot (lane_pilot.h) decides by what the lanes see, and knows no socket. Here its orders become dials,
//          and the ends of lanes: one that is closed drains first, then keeps a socket of no use in its place.
// Threads: the reactor. Lifetime: owned by its sending end. Units: bytes, bytes per second.
// Errors:  to the connection's failure.
#pragma once

#include "net_socket/comm/sender_healing.h"
#include "net_socket/engine/link.h"
#include "net_socket/send/lane_rates.h"

namespace tcpx {

class LaneSteering {
 public:
  explicit LaneSteering(const SenderParts& parts) : parts_(parts), self_(parts.tie->To(this)) {}

  // For the rates of the lanes, which come first. `self`: to the object that will be.
  static LaneRates::Settings RatesFor(const LaneHealing& healing, const Link<LaneSteering>& self);

  // The lane has a socket.
  void ResumedInLoop(int lane);

 private:
  void CarryOutAll();
  void CarryOut(const LaneOrder& order);
  // For a lane that is to be closed: true until it is closed.
  bool Closes(int lane);
  void Closed(int lane);
  // Puts a socket of no use in the place of a drained lane's. False: not now.
  bool CloseSocket(int lane);
  // Tells the next connection, and the log, what the pilot has found.
  void NoteFound();

  const SenderParts parts_;
  const Link<LaneSteering> self_;
  LanePolicy::Found found_;  // the latest that was noted
};

}  // namespace tcpx
