// receive_lanes.h: the lanes of a receiving end.
//
// Purpose: lane 0 is read by the calling thread; bulk lanes belong to the progress pool or, without one, to the calling
//          thread too. Which lanes have a socket is LaneTable's to say; here is what moves them.
// Threads: the calling thread, under the comm's mutex, but for counts, holds, AnyEnded and TellPeer, which are any's,
//          and EndLanes as it says.
// Lifetime: borrows all that it is given. Quiesce comes before the destructor.
// Units:   bytes.
// Errors:  to LaneOwner, or as said.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/end_lanes.h"
#include "net_socket/comm/lane_healing.h"
#include "net_socket/receive/bulk_receive_lane.h"
#include "net_socket/receive/express_receive_lane.h"

namespace tcpx {

class ReceiveLanes final : public EndLanes {
 public:
  // With the lanes that have a socket. `healing` null: they get no other.
  ReceiveLanes(ConnectionSetup* setup, LaneOwner* owner, LaneHealing* healing, Destination* destination);

  // Reads what is there, for `wanted`. `bulk`: some receive that is posted may get more than an express message.
  void Drive(const Landing& wanted, bool bulk);
  // Messages below `posted` have receives now.
  void WakeParked(uint64_t posted);
  // There may be a place for payload that had none.
  void WakeStarved();
  // Returns once no thread but the caller's touches the lanes. May be called again.
  void Quiesce();
  // An error record on lane 0, then the end on every lane.
  void TellPeer(absl::string_view why);
  void LeaveAnswering(int lane) {
    if (lane > 0) bulk(lane)->stream().LeaveAnswering();
  }

  ExpressReceiveLane& express() { return express_; }
  const ExpressReceiveLane& express() const { return express_; }
  bool AllEnded() const;
  bool AnyEnded() const;
  // How much of each lane's stream this end has taken, once no thread moves the lanes.
  std::vector<uint64_t> TakenByLane() const;

  void Make(int lane) override;
  absl::Status Replace(int lane, SocketOffer offer) override;
  const LaneCounts* counts(int lane) const override {
    return stream(lane) == nullptr ? nullptr : &stream(lane)->counts();
  }
  int64_t pace(int) const override { return 0; }
  bool parked(int lane) const { return lane > 0 && bulk(lane) != nullptr && bulk(lane)->parked(); }
  bool holds(int lane) const override { return stream(lane) != nullptr && stream(lane)->holds(); }

 private:
  PoolLane* Mover(int lane) const override { return bulk(lane); }
  BulkReceiveLane* bulk(int lane) const { return bulk_[static_cast<size_t>(lane) - 1].get(); }
  // Null: the lane never had a socket.
  const ReceiveStream* stream(int lane) const {
    if (lane == 0) return &express_.stream();
    return bulk(lane) == nullptr ? nullptr : &bulk(lane)->stream();
  }

  ConnectionSetup* const setup_;
  LaneOwner* const owner_;
  LaneHealing* const healing_;
  Destination* const destination_;
  ExpressReceiveLane express_;
  std::vector<std::unique_ptr<BulkReceiveLane>> bulk_;  // null: a lane without a socket yet
  bool complete_ = false;                               // lanes that are made now are opened late
  unsigned passes_ = 0;
};

}  // namespace tcpx
