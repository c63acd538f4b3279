#include "net_socket/send/send_stream.h"

#include <errno.h>
#include <poll.h>

#include <algorithm>

#include "common/socket.h"
#include "common/status.h"
#include "net_socket/send/tuning.h"

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

// Linux reports POLLHUP, unasked, once both directions have ended (tcp_poll).
bool SendStream::Died() const {
  pollfd socket{settings_.fd, 0, 0};
  return poll(&socket, 1, 0) > 0 && (socket.revents & POLLHUP) != 0;
}

void SendStream::LookForAcks() {
  const int queued = QueuedBytes(settings_.fd);
  held_->Acked(sealer_ == nullptr ? queued : sealer_->Unacked(queued));
}

int64_t SendStream::LookForAcks(int64_t now_ns) {
  if (held_->empty()) return 0;
  LookForAcks();
  const bool moved = held_->acked() != std::exchange(acked_, held_->acked());
  ack_wait_ns_ = moved ? tuning::kAckLookNs : std::clamp(2 * ack_wait_ns_, tuning::kAckLookNs, tuning::kAckLookMaxNs);
  return held_->empty() ? 0 : now_ns + ack_wait_ns_;
}

int SendStream::SendAgain() {
  constexpr int kIovMax = 128;
  while (held_->resending()) {
    iovec iov[kIovMax];
    const ssize_t sent = Send(iov, held_->GatherAgain(iov, kIovMax));
    if (sent >= 0) {
      held_->SentAgain(static_cast<size_t>(sent));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// What is sealed and not sent would be taken for what comes after it.
void SendStream::PeerTook(uint64_t taken) {
  if (held_->PeerTook(taken) && sealer_ != nullptr && sealer_->pending()) sealer_->Stop();
}

absl::Status SendStream::Replace(SocketOffer offer) {
  if (offer.closes) {
    const absl::Status closed = CloseSocket(settings_.fd, offer.fd);
    sealer_ = nullptr;  // Its keys go with the socket.
    lost_ = true;
    offer.done(0);
    return closed;
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
