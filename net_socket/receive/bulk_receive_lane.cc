#include "net_socket/receive/bulk_receive_lane.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/socket.h"
#include "common/status.h"
#include "net_socket/message/failure_kind.h"

namespace tcpx {

BulkReceiveLane::BulkReceiveLane(LaneOwner* owner, const Settings& settings, PostedReceiveTable* table,
                                 StagePool* stages)
    : owner_(owner),
      lane_(settings.lane),
      opened_(settings.opened),
      table_(table),
      receive_(table, stages, settings.lane, ReceiveLane::Borrows::kForFlagLines) {
  op_.fd = settings.fd;
  op_.kind = IoOp::Kind::kReceive;
}

bool BulkReceiveLane::TakeParked(uint64_t posted) {
  uint64_t at = parked_at_.load(std::memory_order_seq_cst);
  return at < posted && parked_at_.compare_exchange_strong(at, kNotParked, std::memory_order_seq_cst);
}

void BulkReceiveLane::Digested() {
  if (!receive_.status().ok()) owner_->FailLane(receive_.status(), lane_);
  if (receive_.ended()) ended_.store(true, std::memory_order_release);
}

void BulkReceiveLane::AdvanceInLoop(Engine* engine) {
  if (next_socket_.waiting()) {
    if (op_.in_flight) {
      cancelled_ = true;
      engine->Cancel(&op_);  // With what it has read it comes back here.
      return;
    }
    engine->Forget(op_.fd);
    const absl::Status replaced = Replace(next_socket_.Take());
    if (!replaced.ok()) owner_->FailLane(replaced, lane_);
  }
  if (drops_socket_ && !op_.in_flight) {
    engine->Forget(op_.fd);
    DropSocket();
  }
  if (op_.in_flight || !owner_->open() || Waits()) return;
  for (;;) {
    op_.iov_count = receive_.Prepare(op_.iov);
    const ssize_t left = ReadHeld();
    if (left != 0) {
      Received(left < 0 ? -EBADMSG : static_cast<int>(left));
      if (left < 0 || !owner_->open()) return;
      continue;
    }
    if (op_.iov_count > 0) break;
    Digested();
    intake_.Rest();
    if (receive_.stalled()) stalled_.store(true, std::memory_order_release);
    if (!receive_.parked()) return;
    parked_at_.store(receive_.parked_sequence(), std::memory_order_seq_cst);
    if (!TakeParked(table_->posted())) return;  // The post that it waits for will kick it.
  }
  if (intake_.sealed()) {
    op_.iov[0] = intake_.Room(receive_.rest_bytes());
    op_.iov_count = 1;
  }
  Submit(engine, &op_);
}

ssize_t BulkReceiveLane::ReadHeld() {
  const size_t left = intake_.ReadLeft(op_.iov, op_.iov_count);
  if (left > 0 || !intake_.sealed() || op_.iov_count == 0) return static_cast<ssize_t>(left);
  return intake_.Opened(op_.iov, op_.iov_count);
}

void BulkReceiveLane::CompleteInLoop(const Completion& completion) {
  if (completion.result > 0 && intake_.sealed()) return intake_.TookSealed(static_cast<size_t>(completion.result));
  if (completion.result > 0) intake_.Took(static_cast<size_t>(completion.result));
  Received(completion.result);
}

void BulkReceiveLane::Received(int result) {
  if (result > 0) {
    receive_.Advance(static_cast<size_t>(result));
  } else if (!IsTransientErrno(-result) && !(result == -ECANCELED && cancelled_)) {
    Ended(-result);
  }
  Digested();
}

void BulkReceiveLane::Ended(int err) {
  if (err == EBADMSG) return owner_->FailLane(FailureOf(FailureKind::kForged, kNotAuthentic), lane_);
  const absl::Status why =
      err == 0 ? absl::UnavailableError("the peer closed the connection") : ErrnoStatus(err, "receive");
  // One that was opened and never used: its dialler may have given it up before it was answered.
  const bool unused = opened_ && intake_.taken() == 0;
  if ((receive_.rests() || unused) && owner_->RestLane(lane_)) {
    lost_ = drops_socket_ = true;
    lost_by_ = 0;
  } else if (owner_->LoseLane(why, lane_)) {
    lost_ = true;
    lost_by_ = err;
  } else if (err == 0 || owner_->peer_left()) {
    if (intake_.cut()) return owner_->FailLane(absl::UnavailableError(kCutRecord), lane_);
    receive_.End();
  } else {
    owner_->FailLane(why, lane_);
  }
}

// What is left of a socket that has ended would stay in memory, here and at the peer.
void BulkReceiveLane::DropSocket() {
  drops_socket_ = false;
  intake_.Forget();
  const auto none = StreamSocket(AF_INET);
  if (none.ok()) (void)ParkSocket(op_.fd, none->get());
}

bool BulkReceiveLane::Waits() {
  if (!lost_) return false;
  if (owner_->heals()) return true;
  lost_ = false;
  Ended(lost_by_);
  Digested();
  return true;
}

absl::Status BulkReceiveLane::Replace(SocketOffer offer) {
  const bool authentic = intake_.Freeze(op_.fd);
  absl::Status replaced = ReplaceSocket(op_.fd, offer.fd);
  if (!authentic) replaced = FailureOf(FailureKind::kForged, kNotAuthentic);
  if (offer.seals != nullptr) intake_.OpenBy(std::move(offer.seals->opener));
  lost_ = cancelled_ = drops_socket_ = false;
  owner_->LaneBack(lane_);
  offer.done(intake_.taken());
  return replaced;
}

void BulkReceiveLane::Pump() {
  if (!owner_->open() || Waits()) return;
  iovec iov[ReceiveLane::kIovMax];
  const int places = receive_.Prepare(iov);
  if (places > 0) {
    const ssize_t got = intake_.Receive(op_.fd, iov, places);
    if (got < 0 && IsTransientErrno(errno)) {
      receive_.NothingCame();
      return;
    }
    Received(got < 0 ? -errno : static_cast<int>(got));
    if (drops_socket_) DropSocket();
  } else {
    Digested();
  }
}

}  // namespace tcpx
