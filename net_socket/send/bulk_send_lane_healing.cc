// What a lane does that goes on with another socket (docs/healing.md).
#include <utility>

#include "net_socket/send/bulk_send_lane.h"
#include "net_socket/send/held_frames.h"
#include "net_socket/send/lane_rates.h"

namespace tcpx {

bool BulkSendLane::ReplaceInLoop(Engine* engine) {
  if (sending_ != nullptr) {
    engine->Cancel(sending_);
    return false;
  }
  engine->Forget(op_.fd);
  const absl::Status replaced = Replace(next_socket_.Take());
  if (!replaced.ok()) owner_->FailLane(replaced, settings_.lane);
  return true;
}

absl::Status BulkSendLane::Replace(SocketOffer offer) {
  if (offer.parks) {
    const absl::Status parked = ParkSocket(op_.fd, offer.fd);
    sealer_ = nullptr;  // Its keys go with the socket.
    lost_ = true;
    parked_.store(true, std::memory_order_release);
    offer.done(0);
    return parked;
  }
  absl::Status replaced = ReplaceSocket(op_.fd, offer.fd);
  if (offer.seals != nullptr) sealer_ = std::move(offer.seals->sealer);
  if (replaced.ok() && !held_->Rewind(offer.position)) replaced = absl::UnavailableError(kLostAcknowledged);
  lost_ = false;
  drained_.store(false, std::memory_order_relaxed);
  parked_.store(false, std::memory_order_relaxed);
  if (rates_->steered()) {
    rate_.Restart();
    rates_->Set(index(), 0);
  }
  owner_->LaneBack(settings_.lane);
  offer.done(0);
  return replaced;
}

void BulkSendLane::SubmitAgain(Engine* engine) {
  again_ = true;
  SubmitSend(engine, held_->GatherAgain(op_.iov, IoOp::kIovMax));
}

// True when all of it was sent.
bool BulkSendLane::PumpAgain() {
  const int err = SendAgain(op_.fd, held_.get(), sealer_.get(), settings_.seals);
  if (err != 0) Broke(err);
  return err == 0;
}

void BulkSendLane::PeerTook(uint64_t taken) { PeerTookOf(taken, held_.get(), sealer_.get()); }

}  // namespace tcpx
