#include "net_socket/receive/express_receive_lane.h"

#include <errno.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "common/clock.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/message/wire.h"

namespace tcpx {

absl::Status RecordSender::Send(bool* said) {
  *said = false;
  while (waits()) {
    const ssize_t sent = SendBytes(credits_->data(), credits_->bytes());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0 && errno == EPROTO && CantSeal()) return absl::InternalError(kCantSeal);
    if (sent < 0 && errno != EPIPE && errno != EPROTO) error_ = errno;
    if (sent < 0 && owner_->heals()) break;  // They go on with another socket.
    credits_->Advance(sent < 0 ? credits_->bytes() : static_cast<size_t>(sent));
    *said = true;
  }
  Hold();
  return absl::OkStatus();
}

bool RecordSender::CantSeal() {
  MutexLock lock(mutex_);
  return sealer_ != nullptr && sealer_->broken();
}

ssize_t RecordSender::SendBytes(const char* data, size_t bytes) {
  if (!sealed_) return send(fd_, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  MutexLock lock(mutex_);
  iovec piece{const_cast<char*>(data), bytes};
  return SendBy(sealer_.get(), sealed_, fd_, &piece, 1);
}

void RecordSender::SendError(absl::string_view why) {
  std::string record = EncodeRecord(FrameKind::kError, why.substr(0, kCauseBytesMax));
  iovec piece{&record[0], record.size()};
  // Not into the middle of a credit; the end alone tells the peer too.
  const bool whole = !may_be_cut_.load(std::memory_order_relaxed);
  MutexLock lock(mutex_);  // A new socket's answer goes first, sealed or not.
  if (whole) {
    // What is sealed of a credit and not sent would take the record's bytes for its own.
    if (sealer_ == nullptr || !sealer_->pending()) (void)SendBy(sealer_.get(), sealed_, fd_, &piece, 1);
    sealer_ = nullptr;  // It was the last: what is left of it is nobody's credit.
  }
  shutdown(fd_, SHUT_WR);
}

// Where acknowledgements may be put off the tuning says when.
ExpressReceiveLane::ExpressReceiveLane(LaneOwner* owner, const Settings& settings, Seals* seals,
                                       Destination* destination, StagePool* stages)
    : owner_(owner),
      stream_(owner, {settings.fd, 0, false, !settings.path.delays_acks}, destination, stages,
              ReceiveLane::Borrows::kAlways),
      pattern_(settings.path.times_long_messages),
      tuning_(settings.fd, settings.path, settings.heals),
      records_(owner, settings.fd, settings.sealed, std::move(seals->sealer)) {
  stream_.intake().OpenBy(std::move(seals->opener));
  if (settings.announces) records_.Announce(settings.heals);
  stream_.LeaveAnswering();
}

void ExpressReceiveLane::Pump(const PostedReceive& wanted) {
  if (records_.waits()) SendRecords();
  if (!owner_->open() || stream_.Waits()) return;
  ReceiveLane& frames = stream_.frames();
  iovec iov[ReceiveLane::kIovMax];
  const int places = frames.Prepare(iov);
  const bool staged_was_enough = wanted.done.load(std::memory_order_acquire);
  if (places > 0 && !staged_was_enough) {
    const ssize_t got = stream_.Receive(iov, places);
    if (got > 0) {
      Took(static_cast<size_t>(got));
    } else if (got < 0 && IsTransientErrno(errno)) {
      frames.NothingCame();
    } else {
      const int by_sending = records_.TakeError();
      return stream_.Broke(got < 0 ? errno : by_sending);
    }
  }
  if (places == 0 || frames.parked()) stream_.intake().GiveBack();
  stream_.Check();
}

void ExpressReceiveLane::Took(size_t bytes) {
  ReceiveLane& frames = stream_.frames();
  const uint64_t completed = frames.messages_completed();
  frames.Advance(bytes);
  const int messages = static_cast<int>(frames.messages_completed() - completed);
  const TrafficPattern pattern =
      pattern_.Saw({messages, frames.between_frames(), frames.current().message_bytes}, MonotonicNanos);
  tuning_.Keep(pattern, frames.TakeLargest());
  frames.ReadAhead(pattern != TrafficPattern::kLargePingPong);
}

void ExpressReceiveLane::SendRecords() {
  const absl::Status sent = TrySendRecords();
  if (!sent.ok()) owner_->FailLane(sent, stream_.lane());
}

absl::Status ExpressReceiveLane::TrySendRecords() {
  if (stream_.lost()) {
    records_.Hold();
    return absl::OkStatus();
  }
  bool said = false;
  absl::Status sent = records_.Send(&said);
  if (said) {
    tuning_.Answered();
    stream_.LeaveAnswering();
  }
  return sent;
}

absl::Status ExpressReceiveLane::Replace(SocketOffer offer) {
  const auto records_taken = static_cast<uint32_t>(offer.position);
  Seals* const seals = offer.seals.get();
  const absl::Status replaced = records_.GoOn(seals, [&] { return stream_.Replace(std::move(offer)); });
  (void)records_.TakeError();
  tuning_.SocketReplaced();
  stream_.LeaveAnswering();
  if (!replaced.ok()) return replaced;
  if (!records_.Rewind(records_taken)) return absl::UnavailableError("the peer reports credits that it was never sent");
  return TrySendRecords();
}

}  // namespace tcpx
