// receive_lanes.h: the lanes of a receiving end.
//
// Threads, Lifetime: as LanesOf; AnyEnded and TellPeer from any thread. Units: bytes. Errors: to LaneOwner, or as said.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "net_socket/comm/end_lanes.h"
#include "net_socket/comm/lane_healing.h"
#include "net_socket/receive/bulk_receive_lane.h"
#include "net_socket/receive/express_receive_lane.h"

namespace tcpx {

class ReceiveLanes final : public LanesOf<ExpressReceiveLane, BulkReceiveLane, ReceiveStream> {
 public:
  // With the lanes that have a socket. `healing` null: they get no other.
  ReceiveLanes(ConnectionSetup* setup, LaneOwner* owner, LaneHealing* healing, Destination* destination);

  // Reads what is there, for `wanted`. `bulk`: some receive that is posted may get more than an express message.
  void Drive(const PostedReceive& wanted, bool bulk);
  // Messages below `posted` have receives now.
  void WakeParked(uint64_t posted);
  // There may be a place for payload that had none.
  void WakeStarved();
  // An error record on lane 0, then the end on every lane.
  void TellPeer(absl::string_view why) override;
  void LeaveAnswering(int lane) {
    if (lane > 0) bulk(lane)->stream().LeaveAnswering();
  }

  bool AllEnded() const { return !Any(false); }
  bool AnyEnded() const override { return Any(true); }
  // How much of each lane's stream this end has taken, once no thread moves the lanes.
  std::vector<uint64_t> TakenByLane() const;

  void Make(int lane) override;
  absl::Status Replace(int lane, SocketOffer offer) override;
  int64_t pace(int) const override { return 0; }
  std::vector<LanePace> Paces() const override { return {}; }
  bool parked(int lane) const override { return lane > 0 && bulk(lane) != nullptr && bulk(lane)->parked(); }
  bool holds(int lane) const override { return stream(lane) != nullptr && stream(lane)->holds(); }

 private:
  // Each question costs a call: lanes that had nothing lately are asked by turns.
  void PumpBulk();
  // Whether a lane has ended, or one has not.
  bool Any(bool ended) const;

  LaneHealing* const healing_;
  Destination* const destination_;
  bool complete_ = false;  // lanes that are made now are opened late
  unsigned passes_ = 0;
  unsigned idle_turn_ = 0;  // of which group of lanes
};

}  // namespace tcpx
