#include "net_socket/receive/bulk_receive_lane.h"

#include <errno.h>

#include "common/socket.h"
#include "common/status.h"

namespace tcpx {

BulkReceiveLane::BulkReceiveLane(LaneOwner* owner, int fd, int lane, PostedReceiveTable* table, StagePool* stages)
    : owner_(owner), lane_(lane), table_(table), receive_(table, stages, lane, ReceiveLane::Borrows::kForFlagLines) {
  op_.fd = fd;
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
  if (op_.in_flight || owner_->failed()) return;
  for (;;) {
    op_.iov_count = receive_.Prepare(op_.iov);
    if (op_.iov_count > 0) break;
    Digested();
    if (receive_.stalled()) stalled_.store(true, std::memory_order_release);
    if (!receive_.parked()) return;
    parked_at_.store(receive_.parked_sequence(), std::memory_order_seq_cst);
    if (!TakeParked(table_->posted())) return;  // The post that it waits for will kick it.
  }
  Submit(engine, &op_);
}

void BulkReceiveLane::CompleteInLoop(const Completion& completion) { Received(completion.result); }

void BulkReceiveLane::Received(int result) {
  if (result > 0) {
    receive_.Advance(static_cast<size_t>(result));
  } else if (result == 0) {
    receive_.End();
  } else if (!IsTransientErrno(-result)) {
    owner_->FailLane(ErrnoStatus(-result, "receive"), lane_);
  }
  Digested();
}

void BulkReceiveLane::Pump() {
  if (owner_->failed()) return;
  iovec iov[ReceiveLane::kIovMax];
  const int places = receive_.Prepare(iov);
  if (places > 0) {
    const ssize_t got = ReceiveNow(op_.fd, iov, places);
    if (got < 0 && IsTransientErrno(errno)) {
      receive_.NothingCame();
      return;
    }
    Received(got < 0 ? -errno : static_cast<int>(got));
  } else {
    Digested();
  }
}

}  // namespace tcpx
