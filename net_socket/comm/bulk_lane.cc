#include "net_socket/comm/bulk_lane.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/comm/comm.h"
#include "net_socket/message/transfer_events.h"
#include "net_socket/nic/path_profile.h"

namespace tcpx {
namespace {

// While a lane drains with nothing to pull.
constexpr int64_t kLookEveryNs = 2 * kMillisecond;

// The least round trip changes with the path only.
constexpr int64_t kRttEveryNs = 100 * kMillisecond;

bool Transient(int err) { return err == EAGAIN || err == EWOULDBLOCK || err == EINTR; }

// A zero-copy send that copying may well serve: no such operation on this kernel or socket, or no memory to pin
// (RLIMIT_MEMLOCK counts without CAP_IPC_LOCK).
bool RefusesZeroCopy(int err) {
  return err == EOPNOTSUPP || err == EINVAL || err == ENOMEM || err == ENOBUFS || err == EFAULT;
}

// The kernel gives up what it has queued, however long the peer does not read; a reset tells the peer. A bare system
// call, because the thread sanitizer takes connect() for the making of a new descriptor.
void Disconnect(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  (void)syscall(SYS_connect, fd, &none, sizeof(none));
}

}  // namespace

BulkSendLane::BulkSendLane(Comm* comm, int lane, Striper* striper, LaneRates* rates)
    : comm_(comm),
      lane_(lane),
      striper_(striper),
      rates_(rates),
      rate_(comm->runtime()->options.chunk_bytes_min),
      paced_by_rate_(comm->path().paced_by_rate),
      zero_copy_(comm->path().zero_copy) {
  op_.fd = comm->lane_fd(lane);
}

bool BulkSendLane::HasRoom(int64_t* retry_ns) {
  *retry_ns = 0;
  if (!paced_by_rate_) return UnsentBytes(op_.fd) < kBulkUnsentBytes;
  const int64_t now = MonotonicNanos();
  const int64_t held = Look(now);
  if (held < rate_.held_max()) return true;
  *retry_ns = now + rate_.RetryAfterNs(held);
  return false;
}

int64_t BulkSendLane::Look(int64_t now) {
  const int64_t held = QueuedBytes(op_.fd);
  rate_.Sample(now, bytes_sent_.load(std::memory_order_relaxed), held, continuous_);
  looked_ns_ = now;
  continuous_ = false;
  RefreshRate(now);
  return held;
}

int64_t BulkSendLane::LookWhileHeld() {
  continuous_ = false;
  if (!watching_) return 0;
  const int64_t now = MonotonicNanos();
  if (now - looked_ns_ >= kLookEveryNs) {
    // Nothing was sent since: what is held now was held all the time.
    continuous_ = QueuedBytes(op_.fd) > 0;
    watching_ = Look(now) > 0;
  }
  return watching_ ? now + kLookEveryNs : 0;
}

void BulkSendLane::RefreshRate(int64_t now) {
  rates_->Set(lane_ - 1, rate_.bytes_per_second());
  if (now - rtt_asked_ns_ < kRttEveryNs) return;
  rtt_asked_ns_ = now;
  tcp_info info{};
  socklen_t length = sizeof(info);
  if (getsockopt(op_.fd, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
      length >= offsetof(tcp_info, tcpi_min_rtt) + 4) {
    rate_.set_min_rtt_ns(int64_t{info.tcpi_min_rtt} * kMicrosecond);
  }
}

bool BulkSendLane::PullChunk() {
  const int64_t chunk_bytes = comm_->runtime()->options.chunk_bytes;
  const int64_t want = paced_by_rate_ ? std::min(chunk_bytes, rate_.chunk_max()) : chunk_bytes;
  if (!striper_->Pull(static_cast<size_t>(want), rates_->Share(lane_ - 1), &chunk_)) return false;
  const SendRequest& request = *chunk_.request;
  if (request.events != nullptr) request.events->Count(lane_, chunk_.length, request.message_bytes);
  FrameHeader header;
  header.length = static_cast<uint32_t>(chunk_.length);
  header.sequence = request.sequence;
  header.offset = request.message_offset + chunk_.offset;
  header.message_bytes = request.message_bytes;
  header.tag = request.tag;
  EncodeHeader(header, header_);
  taken_ = 0;
  continuous_ = true;
  watching_ = paced_by_rate_;
  return true;
}

int BulkSendLane::Gather(iovec* iov) const {
  int count = 0;
  const char* payload = chunk_.request->data + chunk_.offset;
  if (taken_ < kHeaderBytes) {
    iov[count++] = {const_cast<char*>(header_ + taken_), kHeaderBytes - taken_};
    iov[count++] = {const_cast<char*>(payload), chunk_.length};
  } else {
    const size_t sent = taken_ - kHeaderBytes;
    iov[count++] = {const_cast<char*>(payload + sent), chunk_.length - sent};
  }
  return count;
}

void BulkSendLane::Advance(size_t bytes) {
  taken_ += bytes;
  CountSent(bytes);
  if (taken_ < kHeaderBytes + chunk_.length) return;
  const Chunk sent = chunk_;
  chunk_.request = nullptr;
  if (rest_of_ == nullptr) {
    Striper::Sent(sent);  // The request may be gone after this.
    return;
  }
  rest_of_->taken = true;
  pinned_.Settle(rest_of_);
  rest_of_ = nullptr;
}

void BulkSendLane::CountSent(size_t bytes) {
  bytes_sent_.store(bytes_sent_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
}

// True exactly when there is nothing to pull: the next post will kick the lane.
bool BulkSendLane::WaitForWork() {
  idle_.store(true, std::memory_order_seq_cst);
  return striper_->drained() || !TakeIdle();
}

bool BulkSendLane::NextChunkInLoop(Engine* engine) {
  while (chunk_.request == nullptr) {
    if (striper_->drained()) {
      if (WaitForWork()) {
        retry_at_ns_ = LookWhileHeld();
        return false;
      }
      continue;
    }
    int64_t retry_ns = 0;
    if (!HasRoom(&retry_ns)) {
      retry_at_ns_ = retry_ns;
      if (retry_ns != 0) return false;
      op_.kind = IoOp::Kind::kWritable;
      sending_ = true;
      Submit(engine, &op_);
      return false;
    }
    PullChunk();
  }
  return true;
}

// A registered buffer holds no header: that goes ahead, and the payload alone is sent without a copy.
void BulkSendLane::AdvanceInLoop(Engine* engine) {
  registered_.Settle(engine);
  if (sending_ || comm_->failed() || !NextChunkInLoop(engine)) return;
  sending_ = true;
  if (taken_ == 0) buffer_ = BufferOf(engine);
  const size_t begin = buffer_ == kNoBuffer ? 0 : kHeaderBytes;
  if (taken_ == begin && SubmitPinned(engine)) return;
  op_.kind = IoOp::Kind::kSend;
  op_.iov_count = Gather(op_.iov);
  op_.more = taken_ < begin;
  if (op_.more) op_.iov_count = 1;
  Submit(engine, &op_);
}

int BulkSendLane::BufferOf(Engine* engine) {
  const MemoryRegion* region = chunk_.request->region;
  if (region == nullptr || rest_of_ != nullptr || !zero_copy_.proven() || !zero_copy_.Wants(chunk_.length) ||
      !engine->zero_copy()) {
    return kNoBuffer;
  }
  const char* payload = chunk_.request->data + chunk_.offset;
  if (payload < region->data || payload + chunk_.length > region->data + region->bytes) return kNoBuffer;
  return registered_.Find(engine, {region->id, region->data, region->bytes});
}

bool BulkSendLane::SubmitPinned(Engine* engine) {
  if (rest_of_ != nullptr || !zero_copy_.Wants(chunk_.length) || !engine->zero_copy()) return false;
  PinnedChunk* pinned = pinned_.Take();
  if (pinned == nullptr) return false;
  pinned->chunk = chunk_;
  pinned->begin = taken_;
  std::memcpy(pinned->header, header_, kHeaderBytes);
  IoOp* op = &pinned->op;
  op->kind = IoOp::Kind::kSendZeroCopy;
  op->fd = op_.fd;
  op->owner = static_cast<PoolLane*>(this);
  op->buffer = buffer_;
  op->iov_count = 0;
  if (taken_ == 0) op->iov[op->iov_count++] = {pinned->header, kHeaderBytes};
  op->iov[op->iov_count++] = {const_cast<char*>(chunk_.request->data + chunk_.offset), chunk_.length};
  chunk_.request = nullptr;
  Submit(engine, op);
  return true;
}

// What the kernel did not take goes on as an ordinary chunk.
void BulkSendLane::CompletePinned(PinnedChunk* pinned, const Completion& completion) {
  if (completion.release) {
    pinned->released = true;
    zero_copy_.Notified(completion.result != 0);
    pinned_.Settle(pinned);
    return;
  }
  sending_ = false;
  pinned->released = !completion.held;
  const size_t sent = completion.result > 0 ? static_cast<size_t>(completion.result) : 0;
  CountSent(sent);
  const size_t taken = pinned->begin + sent;
  if (taken == kHeaderBytes + pinned->chunk.length) {
    pinned->taken = true;
    pinned_.Settle(pinned);
    return;
  }
  if (completion.result < 0 && RefusesZeroCopy(-completion.result)) {
    zero_copy_.Refused();
  } else if (completion.result < 0 && !Transient(-completion.result)) {
    comm_->Fail(ErrnoStatus(-completion.result, "send"), lane_);
  }
  chunk_ = pinned->chunk;
  taken_ = taken;
  rest_of_ = pinned;
}

void BulkSendLane::CompleteInLoop(const Completion& completion) {
  if (completion.op != &op_) {
    CompletePinned(PinnedChunk::Of(completion.op), completion);
    return;
  }
  sending_ = false;
  if (completion.result < 0) {
    if (!Transient(-completion.result)) comm_->Fail(ErrnoStatus(-completion.result, "send"), lane_);
    return;
  }
  if (op_.kind == IoOp::Kind::kSend) Advance(static_cast<size_t>(completion.result));
}

void BulkSendLane::AbortInLoop(Engine* engine) {
  engine->Cancel(&op_);
  // Ends what still waits to be sent, too.
  if (pinned_.InFlight()) Disconnect(op_.fd);
}

void BulkSendLane::LeaveInLoop(Engine* engine) {
  registered_.ReleaseAll(engine);
  PoolLane::LeaveInLoop(engine);
}

bool BulkSendLane::Forget(const MemoryRegion& region) { return registered_.Forget(region.id); }

void BulkSendLane::Pump() {
  while (!comm_->failed()) {
    int64_t retry_ns = 0;
    if (chunk_.request == nullptr) {
      if (striper_->drained()) {
        LookWhileHeld();
        return;
      }
      if (!HasRoom(&retry_ns) || !PullChunk()) return;
    }
    iovec iov[2];
    msghdr message{};
    message.msg_iov = iov;
    message.msg_iovlen = static_cast<size_t>(Gather(iov));
    const ssize_t sent = sendmsg(op_.fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      if (!Transient(errno)) comm_->Fail(ErrnoStatus(errno, "send"), lane_);
      return;
    }
    Advance(static_cast<size_t>(sent));
    if (chunk_.request != nullptr) return;  // The socket is full.
  }
}

BulkReceiveLane::BulkReceiveLane(Comm* comm, int lane, PostedReceiveTable* table)
    : comm_(comm), lane_(lane), table_(table), receive_(table, nullptr, lane) {
  op_.fd = comm->lane_fd(lane);
  op_.kind = IoOp::Kind::kReceive;
}

bool BulkReceiveLane::TakeParked(uint64_t posted) {
  uint64_t at = parked_at_.load(std::memory_order_seq_cst);
  return at < posted && parked_at_.compare_exchange_strong(at, kNotParked, std::memory_order_seq_cst);
}

void BulkReceiveLane::Digested() {
  if (!receive_.status().ok()) comm_->Fail(receive_.status(), lane_);
  if (receive_.ended()) ended_.store(true, std::memory_order_release);
}

void BulkReceiveLane::AdvanceInLoop(Engine* engine) {
  if (op_.in_flight || comm_->failed()) return;
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
  } else if (!Transient(-result)) {
    comm_->Fail(ErrnoStatus(-result, "receive"), lane_);
  }
  Digested();
}

void BulkReceiveLane::Pump() {
  if (comm_->failed()) return;
  iovec iov[ReceiveLane::kIovMax];
  const int places = receive_.Prepare(iov);
  if (places > 0) {
    const ssize_t got = ReceiveNow(op_.fd, iov, places);
    if (got < 0 && Transient(errno)) return;
    Received(got < 0 ? -errno : static_cast<int>(got));
  } else {
    Digested();
  }
}

}  // namespace tcpx
