#include "net_socket/send/send_stream.h"

#include "common/status.h"

namespace tcpx {

bool SendStream::CanSeal() {
  const absl::Status sealed = CheckSealer(settings_.seals, sealer_.get());
  if (!sealed.ok()) owner_->FailLane(sealed, settings_.lane);
  return sealed.ok();
}

void SendStream::Broke(int err) {
  if (IsTransientErrno(err)) return;
  if (!CanSeal()) return;  // Another socket would not cure it.
  const absl::Status why = ErrnoStatus(err, "send");
  if (owner_->LoseLane(why, settings_.lane)) {
    lost_ = true;
  } else {
    owner_->FailLane(why, settings_.lane);
  }
}

absl::Status SendStream::Replace(SocketOffer offer) {
  if (offer.parks) {
    const absl::Status parked = ParkSocket(settings_.fd, offer.fd);
    sealer_ = nullptr;  // Its keys go with the socket.
    lost_ = true;
    offer.done(0);
    return parked;
  }
  absl::Status replaced = ReplaceSocket(settings_.fd, offer.fd);
  if (offer.seals != nullptr) sealer_ = std::move(offer.seals->sealer);
  if (replaced.ok() && !held_->Rewind(offer.position)) replaced = absl::UnavailableError(kLostAcknowledged);
  lost_ = false;
  owner_->LaneBack(settings_.lane);
  offer.done(held_->resending() ? 1 : 0);
  return replaced;
}

}  // namespace tcpx
