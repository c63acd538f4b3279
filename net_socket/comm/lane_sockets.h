// lane_sockets.h: how the lanes of one end get other sockets, and their first ones where lanes come and go.
//
// Purpose: a new socket for a lane is handed over here (SocketTaker). A lane of a progress thread takes it in that
//          thread, another one under the comm's mutex, which is only tried.
// Threads: the reactor; the connection's link is held. Lifetime: owned by its comm; borrows all that it is given.
// Errors:  to the connection's failure.
#pragma once

#include <memory>

#include "net_socket/comm/connection_failure.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/end_lanes.h"
#include "net_socket/comm/redialler.h"
#include "net_socket/nic/lane_budget.h"

namespace tcpx {

class LaneSockets final : public SocketTaker {
 public:
  LaneSockets(ConnectionSetup* setup, ConnectionEnd* end, const Tie& tie, ConnectionFailure* failure, Mutex* mutex);

  // Has all lanes of progress threads look for what there is to do.
  void KickAll();

  Handover TakeSocket(int lane, SocketOffer* offer) override;
  // The same, without a word to others that the lane goes on: one of a progress thread takes `offer` soon, another now.
  Handover HandOver(int lane, SocketOffer* offer);

 private:
  Handover Open(int lane, SocketOffer* offer);
  // `position` and `taken`: as SocketOffer says, and is answered.
  void Resumed(int lane, uint64_t position, uint64_t taken, Seals* seals);
  LaneTable& table() { return failure_->healing().lanes(); }

  ConnectionSetup* const setup_;
  ConnectionEnd* const end_;
  const Link<LaneSockets> self_;
  ConnectionFailure* const failure_;
  Mutex* const mutex_;  // the comm's
  // Null: lanes don't come and go. One that is closed keeps its part of the budget, as it keeps its descriptor.
  std::unique_ptr<OpenLanes> open_lanes_;
};

}  // namespace tcpx
