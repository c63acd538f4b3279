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
  // Whose sockets they are.
  class Owner {
   public:
    // A lane has its first socket. The comm's mutex is held.
    virtual void LaneOpened(int lane) = 0;
    // A lane goes on with another socket, or its first. What seals it, but for the half of the lane's mover, is in
    // `seals`; null: nothing.
    virtual void LaneResumed(int lane, Seals* seals) = 0;

   protected:
    ~Owner() = default;
  };

  // `healing` null: no lane gets another socket.
  LaneSockets(ConnectionSetup* setup, Direction direction, const Tie& tie, Owner* owner, LaneHealing* healing,
              ConnectionFailure* failure, Mutex* mutex);

  // Once the lanes are there.
  void Serve(EndLanes* lanes) { lanes_ = lanes; }
  // Has all lanes of progress threads look for what there is to do.
  void KickAll();

  Handover TakeSocket(int lane, SocketOffer* offer) override;
  // The same, without a word to others that the lane goes on: one of a progress thread takes `offer` soon, another now.
  Handover HandOver(int lane, SocketOffer* offer);

 private:
  Handover Open(int lane, SocketOffer* offer);
  // Where a stream goes on: of SocketOffer, what it says, and what it is answered.
  struct Place {
    uint64_t offered = 0;
    uint64_t done = 0;
  };
  void Resumed(int lane, const Place& at, Seals* seals);

  ConnectionSetup* const setup_;
  const Direction direction_;
  const Link<LaneSockets> self_;
  Owner* const owner_;
  LaneHealing* const healing_;
  ConnectionFailure* const failure_;
  Mutex* const mutex_;  // the comm's
  EndLanes* lanes_ = nullptr;
  // Null: lanes don't come and go. One that is closed keeps its part of the budget, as it keeps its descriptor.
  std::unique_ptr<OpenLanes> open_lanes_;
};

}  // namespace tcpx
