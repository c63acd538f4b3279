#include "net_socket/receive/bulk_receive_lane.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "common/socket.h"
#include "common/status.h"

namespace tcpx {

BulkReceiveLane::BulkReceiveLane(LaneOwner* owner, const ReceiveStream::Settings& settings, Destination* destination,
                                 StagePool* stages)
    : owner_(owner),
      destination_(destination),
      stream_(owner, settings, destination, stages, ReceiveLane::Borrows::kForFlagLines) {
  op_.fd = settings.fd;
  op_.kind = IoOp::Kind::kReceive;
}

bool BulkReceiveLane::TakeParked(uint64_t posted) {
  uint64_t at = parked_at_.load(std::memory_order_seq_cst);
  return at < posted && parked_at_.compare_exchange_strong(at, kNotParked, std::memory_order_seq_cst);
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
    if (!replaced.ok()) owner_->FailLane(replaced, stream_.lane());
  }
  if (stream_.drops_socket() && !op_.in_flight) {
    engine->Forget(op_.fd);
    stream_.DropSocket();
  }
  if (op_.in_flight || !owner_->open() || stream_.Waits()) return;
  ReceiveLane& frames = stream_.frames();
  for (;;) {
    op_.iov_count = frames.Prepare(op_.iov);
    const ssize_t left = stream_.intake().ReadHeld(op_.iov, op_.iov_count);
    if (left != 0) {
      Received(left < 0 ? -EBADMSG : static_cast<int>(left));
      if (left < 0 || !owner_->open()) return;
      continue;
    }
    if (op_.iov_count > 0) break;
    stream_.Check();
    stream_.intake().GiveBack();
    if (frames.starved()) starved_.store(true, std::memory_order_release);
    if (!frames.parked()) return;
    parked_at_.store(frames.parked_sequence(), std::memory_order_seq_cst);
    if (!TakeParked(destination_->posted())) return;  // The post that it waits for will kick it.
  }
  if (stream_.intake().sealed()) {
    op_.iov[0] = stream_.intake().Room(frames.rest_bytes());
    op_.iov_count = 1;
  }
  Submit(engine, &op_);
}

void BulkReceiveLane::CompleteInLoop(const Completion& completion) {
  StreamIntake& intake = stream_.intake();
  if (completion.result > 0 && intake.sealed()) return intake.TookSealed(static_cast<size_t>(completion.result));
  if (completion.result > 0) intake.Took(static_cast<size_t>(completion.result));
  Received(completion.result);
}

void BulkReceiveLane::Received(int result) {
  if (result > 0) {
    stream_.frames().Advance(static_cast<size_t>(result));
    stream_.Check();
  } else if (!IsTransientErrno(-result) && !(result == -ECANCELED && cancelled_)) {
    stream_.Broke(-result);
  }
}

absl::Status BulkReceiveLane::Replace(SocketOffer offer) {
  cancelled_ = false;
  in_vain_ = 0;
  return stream_.Replace(std::move(offer));
}

void BulkReceiveLane::Pump() {
  if (!owner_->open() || stream_.Waits()) return;
  iovec iov[ReceiveLane::kIovMax];
  const int places = stream_.frames().Prepare(iov);
  if (places == 0) return stream_.Check();
  const ssize_t got = stream_.Receive(iov, places);
  if (got < 0 && IsTransientErrno(errno)) {
    in_vain_ = std::min(in_vain_ + 1, kIdleReads);
    return stream_.frames().NothingCame();
  }
  in_vain_ = 0;
  Received(got < 0 ? -errno : static_cast<int>(got));
  if (stream_.drops_socket()) stream_.DropSocket();
}

}  // namespace tcpx
