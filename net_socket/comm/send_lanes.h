// send_lanes.h: the lanes of a sending end, and what they share.
//
// Purpose: a message goes to lane 0 or to the bulk lanes.
// Threads, Lifetime: as LanesOf; bulk in the reactor. Units: bytes, bytes per second. Errors: to LaneOwner, or as said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net_socket/comm/end_lanes.h"
#include "net_socket/send/bulk_send_lane.h"
#include "net_socket/send/express_send_lane.h"
#include "net_socket/send/lane_rates.h"
#include "net_socket/send/stripe.h"

namespace tcpx {

class SendLanes final : public LanesOf<ExpressSendLane, BulkSendLane, SendStream> {
 public:
  // With the lanes that have a socket. `posted_max`: messages, and staged parts of them, at once.
  SendLanes(ConnectionSetup* setup, LaneOwner* owner, size_t posted_max, const LaneRates::Settings& rates);
  ~SendLanes() { bulk_.clear(); }  // They borrow what is here.

  // A message, or a staged part of one. `lone`: no other request is unfinished.
  void Post(SendRequest* request, bool lone);
  // Moves what the calling thread moves.
  void Drive();
  void Quiesce();
  // The peer has closed. By lane, how much of its stream the peer had; empty: it does not say. Bulk lanes say
  // themselves whether anything was missing; lane 0's is taken note of.
  void PeerClosed(const std::vector<uint64_t>& taken);

  LaneRates& rates() { return rates_; }
  // True exactly when the message goes to the bulk lanes.
  bool IsBulk(const SendRequest& request) const {
    return striper_ != nullptr && request.message_bytes > setup_->express_bytes;
  }
  void Make(int lane) override;
  absl::Status Replace(int lane, SocketOffer offer) override;
  int64_t pace(int lane) const override { return lane == 0 ? 0 : rates_.Get(lane - 1); }
  bool holds(int) const override { return false; }
  bool parked(int) const override { return false; }
  bool AnyEnded() const override { return false; }
  std::vector<LanePace> Paces() const override;
  void TellPeer(absl::string_view why) override;

 private:
  std::unique_ptr<Striper> striper_;  // null with a single lane
  LaneRates rates_;
  IdleLanes idle_;
  size_t first_pumped_ = 0;
  bool peer_closed_ = false;  // the bulk lanes know it
};

}  // namespace tcpx
