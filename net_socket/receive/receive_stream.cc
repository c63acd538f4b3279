#include "net_socket/receive/receive_stream.h"

#include <errno.h>
#include <sys/socket.h>

#include <utility>

#include "common/socket.h"
#include "common/status.h"
#include "net_socket/message/failure_kind.h"

namespace tcpx {

// One that was opened and never used: its dialler may have given it up before it was answered. Lane 0 is never closed.
bool ReceiveStream::MayBeClosed() const {
  return lane() > 0 && (frames_.closes() || (settings_.opened && intake_.taken() == 0));
}

void ReceiveStream::Broke(int err) {
  if (err == EBADMSG) return owner_->FailLane(FailureOf(FailureKind::kForged, kNotAuthentic), lane());
  const absl::Status why =
      err == 0 ? absl::UnavailableError("the peer closed the connection") : ErrnoStatus(err, "receive");
  if (MayBeClosed() && owner_->CloseLane(lane())) {
    lost_ = drops_socket_ = true;
    lost_by_ = 0;
  } else if (owner_->LoseLane(why, lane())) {
    lost_ = true;
    lost_by_ = err;
  } else if (err == 0 || owner_->peer_left()) {
    if (intake_.cut()) return owner_->FailLane(absl::UnavailableError(kCutRecord), lane());
    frames_.End();
    Check();
    ended_.store(true, std::memory_order_release);
  } else {
    owner_->FailLane(why, lane());
  }
}

bool ReceiveStream::StillLost() {
  if (owner_->heals()) return true;
  lost_ = false;
  Broke(lost_by_);
  return true;
}

absl::Status ReceiveStream::Replace(SocketOffer offer) {
  const bool authentic = intake_.Freeze(settings_.fd);
  absl::Status replaced = ReplaceSocket(settings_.fd, offer.fd);
  if (!authentic) replaced = FailureOf(FailureKind::kForged, kNotAuthentic);
  if (offer.seals != nullptr) intake_.OpenBy(std::move(offer.seals->opener));
  lost_ = drops_socket_ = false;
  owner_->LaneBack(lane());
  offer.done(intake_.taken());
  return replaced;
}

// What is left of a socket that has ended would stay in memory, here and at the peer.
void ReceiveStream::DropSocket() {
  drops_socket_ = false;
  intake_.Forget();
  const auto none = StreamSocket(AF_INET);
  if (none.ok()) (void)CloseSocket(settings_.fd, none->get());
}

// The kernel takes a socket that has answered for one that will answer again, and holds acknowledgements back for that:
// the sender then takes up to 40 ms for the round trip. A lane only answers its hello, or carries credits.
void ReceiveStream::LeaveAnswering() {
  if (settings_.acks_at_once) (void)SetQuickAck(settings_.fd, 1);
}

}  // namespace tcpx
