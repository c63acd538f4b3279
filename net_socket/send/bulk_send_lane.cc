#include "net_socket/send/bulk_send_lane.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/message/transfer_events.h"
#include "net_socket/seal/seals.h"
#include "net_socket/send/busy_lanes.h"
#include "net_socket/send/held_frames.h"
#include "net_socket/send/lane_rates.h"

namespace tcpx {
namespace {

// Chunks that a lane which heals may hold: at 10 Gbit/s and 64 KiB each 6 ms.
constexpr size_t kHeldChunks = 128;

// A zero-copy send that copying may well serve: no such operation on this kernel or socket, or no memory to pin
// (RLIMIT_MEMLOCK counts without CAP_IPC_LOCK).
bool RefusesZeroCopy(int err) {
  return err == EOPNOTSUPP || err == EINVAL || err == ENOMEM || err == ENOBUFS || err == EFAULT;
}

// Longer chunks are sealed piece by piece, and copied by the kernel.
bool FitsABuffer(size_t chunk_bytes) { return Sealer::RoomFor(kHeaderBytes + chunk_bytes) <= kSealBufferBytes; }

// Of two times, of which 0 is none.
int64_t Earlier(int64_t a, int64_t b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// The kernel gives up what it has queued, however long the peer does not read; a reset tells the peer. A bare system
// call, because the thread sanitizer takes connect() for the making of a new descriptor.
void Disconnect(int fd) {
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  (void)syscall(SYS_connect, fd, &none, sizeof(none));
}

}  // namespace

BulkSendLane::BulkSendLane(LaneOwner* owner, const Settings& settings, Striper* striper, LaneRates* rates,
                           IdleLanes* idle, BusyLanes* busy)
    : owner_(owner),
      settings_(settings),
      striper_(striper),
      rates_(rates),
      idle_(idle),
      busy_(busy),
      rate_(settings.chunk_bytes_min),
      zero_copy_(settings.zero_copy),
      pinned_(!settings.heals) {
  op_.fd = settings.fd;
  if (settings.heals) held_ = std::make_unique<HeldFrames>(kHeldChunks, 0);
}

BulkSendLane::~BulkSendLane() = default;

bool BulkSendLane::PullChunk() {
  int64_t want = settings_.chunk_bytes;
  if (settings_.paced_by_rate) {
    want = std::min(want, rate_.chunk_max());
    if (unsent_max_ >= 0) want = std::min(want, unsent_max_);
    busy_->Note(looked_ns_, &busy_span_);
  }
  const size_t least = static_cast<size_t>(ChunkMin());
  if (!striper_->Pull(static_cast<size_t>(want), rates_->Share(index()), least, &chunk_)) return false;
  const SendRequest& request = *chunk_.request;
  if (request.events != nullptr) request.events->Count(settings_.lane, chunk_.length, request.message_bytes);
  FrameHeader header;
  header.length = static_cast<uint32_t>(chunk_.length);
  header.sequence = request.sequence;
  header.offset = request.message_offset + chunk_.offset;
  header.message_bytes = request.message_bytes;
  header.tag = request.tag;
  EncodeHeader(header, header_);
  said_ = false;
  if (held_ != nullptr) held_->Begin(header_, {request.data + chunk_.offset, chunk_.length, 0}, chunk_.request);
  taken_ = 0;
  continuous_ = true;
  watching_ = settings_.paced_by_rate;
  return true;
}

int BulkSendLane::Gather(iovec* iov) const {
  int count = 0;
  if (saying_) {
    iov[count++] = {const_cast<char*>(header_ + taken_), kHeaderBytes - taken_};
    return count;
  }
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
  const size_t frame = kHeaderBytes + chunk_.length;
  bytes = std::min(bytes, frame - taken_);
  CountSent(bytes, frame - taken_);
  taken_ += bytes;
  if (taken_ < frame) return;
  if (saying_) {
    saying_ = false;
    said_ = true;
    return;
  }
  counts_.chunks.Add();
  const Chunk sent = chunk_;
  chunk_.request = nullptr;
  if (rest_of_ == nullptr) {
    if (held_ == nullptr) Striper::Sent(sent);  // The request may be gone after this.
    return;
  }
  rest_of_->taken = true;
  pinned_.Settle(rest_of_);
  rest_of_ = nullptr;
}

void BulkSendLane::CountSent(size_t bytes, size_t offered) {
  if (held_ != nullptr) held_->Sent(bytes);
  counts_.bytes.Add(bytes);
  counts_.calls.Add();
  if (bytes < offered) counts_.short_calls.Add();
}

// True exactly when there is nothing to pull: the next post will kick the lane.
bool BulkSendLane::WaitForWork() {
  idle_->Rest(index());
  return striper_->drained() || !idle_->Take(index());
}

bool BulkSendLane::SaysRest() {
  if (!said_ && held_->room() > 0) {
    FrameHeader header;
    header.kind = FrameKind::kRest;
    EncodeHeader(header, header_);
    held_->Begin(header_, {}, nullptr);
    chunk_ = Chunk();
    taken_ = 0;
    saying_ = true;
    return true;
  }
  held_->Acked(QueuedOf(op_.fd, sealer_.get()));
  if (said_ && held_->empty()) drained_.store(true, std::memory_order_release);
  return false;
}

bool BulkSendLane::NextChunkInLoop(Engine* engine) {
  while (!loaded()) {
    if (retiring_.load(std::memory_order_acquire)) {
      if (SaysRest()) continue;
      idle_->WakeNext();
      retry_at_ns_ = drained() ? 0 : MonotonicNanos() + kLookEveryNs;
      return false;
    }
    if (striper_->drained()) {
      if (WaitForWork()) {
        retry_at_ns_ = LookWhileHeld();
        return false;
      }
      continue;
    }
    int64_t retry_ns = 0;
    if (!HasRoom(&retry_ns)) {
      idle_->WakeNext();
      retry_at_ns_ = retry_ns;
      if (retry_ns != 0) return false;
      op_.kind = IoOp::Kind::kWritable;
      sending_ = &op_;
      Submit(engine, &op_);
      return false;
    }
    if (PullChunk() && !striper_->drained()) idle_->WakeNext();
  }
  return true;
}

void BulkSendLane::AdvanceInLoop(Engine* engine) {
  if (next_socket_.waiting() && !ReplaceInLoop(engine)) return;
  // Also while a send waits: the peer may take nothing more before one of those in front is done.
  const bool looks = held_ != nullptr && !parked();
  const int64_t look_at_ns = looks ? ack_looks_.Look(op_.fd, held_.get(), MonotonicNanos(), sealer_.get()) : 0;
  SendInLoop(engine);
  retry_at_ns_ = Earlier(retry_at_ns_, look_at_ns);
}

void BulkSendLane::SendInLoop(Engine* engine) {
  if (!owner_->open()) return;
  if (peer_closed_.load(std::memory_order_acquire)) return EndInLoop(engine);
  if (sending_ != nullptr) return;
  if (lost_) {
    idle_->WakeNext();  // Whoever woke this lane has work for one that stands.
    return;
  }
  if (!CanSeal()) return;
  if (held_ != nullptr && held_->resending()) {
    SubmitAgain(engine);
    return;
  }
  if (!NextChunkInLoop(engine)) return;
  if (taken_ == 0 && SubmitPinned(engine)) return;
  SubmitSend(engine, Gather(op_.iov));
}

void BulkSendLane::SubmitSend(Engine* engine, int count) {
  op_.kind = IoOp::Kind::kSend;
  op_.iov_count = count;
  if (sealer_ != nullptr) {
    if (!sealer_->pending() && !sealer_->Seal(op_.iov, count)) {
      (void)CanSeal();
      return;
    }
    op_.iov[0] = sealer_->rest();
    op_.iov_count = 1;
  }
  sending_ = &op_;
  Submit(engine, &op_);
}

size_t BulkSendLane::TookOf(int result) {
  const size_t bytes = static_cast<size_t>(result);
  return sealer_ == nullptr ? bytes : sealer_->Took(bytes);
}

void BulkSendLane::SealBy(std::unique_ptr<Sealer> sealer) { sealer_ = std::move(sealer); }

bool BulkSendLane::CanSeal() {
  const absl::Status sealed = CheckSealer(settings_.seals, sealer_.get());
  if (!sealed.ok()) owner_->FailLane(sealed, settings_.lane);
  return sealed.ok();
}

void BulkSendLane::EndInLoop(Engine* engine) {
  if (sending_ != nullptr) return engine->Cancel(sending_);
  if (held_ != nullptr) PeerTook(peer_took_);
  const bool all_sent = chunk_.request == nullptr && striper_->drained();
  // That a lane rests need not be heard.
  if (all_sent && (held_ == nullptr || held_->all_acked() || !held_->awaited())) return;
  owner_->FailLane(absl::UnavailableError("the peer closed the connection"), settings_.lane);
}

bool BulkSendLane::SubmitPinned(Engine* engine) {
  if (saying_ || rest_of_ != nullptr || !zero_copy_.Wants(chunk_.length) || !engine->zero_copy()) return false;
  if (sealer_ != nullptr && (sealer_->pending() || !FitsABuffer(chunk_.length))) return false;
  PinnedChunk* pinned = pinned_.Take();
  if (pinned == nullptr) return false;
  pinned->chunk = chunk_;
  std::memcpy(pinned->header, header_, kHeaderBytes);
  if (held_ != nullptr) pinned->frame = held_->Pin();
  IoOp* op = &pinned->op;
  op->kind = IoOp::Kind::kSendZeroCopy;
  op->fd = op_.fd;
  op->owner = static_cast<PoolLane*>(this);
  op->iov_count = 2;
  op->iov[0] = {pinned->header, kHeaderBytes};
  op->iov[1] = {const_cast<char*>(chunk_.request->data + chunk_.offset), chunk_.length};
  if (sealer_ != nullptr && !SealPinned(pinned)) return !CanSeal();
  chunk_.request = nullptr;
  sending_ = op;
  Submit(engine, op);
  return true;
}

bool BulkSendLane::SealPinned(PinnedChunk* pinned) {
  pinned->sealed = sealer_->LendRoom();
  if (!sealer_->SealInto(pinned->sealed.get(), kSealBufferBytes, pinned->op.iov, 2)) return false;
  pinned->op.iov[0] = sealer_->rest();
  pinned->op.iov_count = 1;
  return true;
}

// What the kernel did not take goes on as an ordinary chunk; where it is sealed, from where it lies.
void BulkSendLane::CompletePinned(PinnedChunk* pinned, const Completion& completion) {
  if (completion.release) {
    pinned->released = true;
    zero_copy_.Notified(completion.result != 0);
    if (completion.result != 0) counts_.copied.Add();
    if (held_ != nullptr) held_->Unpin(pinned->frame);
    pinned_.Settle(pinned);
    return;
  }
  sending_ = nullptr;
  pinned->released = !completion.held;
  if (held_ != nullptr && pinned->released) held_->Unpin(pinned->frame);
  const size_t taken = completion.result > 0 ? TookOf(completion.result) : 0;
  const size_t frame = kHeaderBytes + pinned->chunk.length;
  if (taken > 0) CountSent(taken, frame);
  if (completion.held) counts_.zero_copy.Add();
  if (taken == frame) {
    counts_.chunks.Add();
    pinned->taken = true;
    pinned_.Settle(pinned);
    return;
  }
  if (completion.result < 0 && RefusesZeroCopy(-completion.result)) {
    zero_copy_.Refused();
  } else if (completion.result < 0) {
    Broke(-completion.result);
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
  sending_ = nullptr;
  const bool again = std::exchange(again_, false);
  if (completion.result < 0) {
    Broke(-completion.result);
  } else if (again) {
    held_->SentAgain(TookOf(completion.result));
  } else if (op_.kind == IoOp::Kind::kSend) {
    Advance(TookOf(completion.result));
  }
}

// Cancelled: for the sake of another socket, or by EndInLoop, which finds the chunk that was left.
void BulkSendLane::Broke(int err) {
  if (IsTransientErrno(err)) return;
  if (err == ECANCELED && (held_ != nullptr || peer_closed_.load(std::memory_order_relaxed))) return;
  if (!CanSeal()) return;  // Another socket would not cure it.
  const absl::Status why = ErrnoStatus(err, "send");
  if (owner_->LoseLane(why, settings_.lane)) {
    lost_ = true;
  } else {
    owner_->FailLane(why, settings_.lane);
  }
}

void BulkSendLane::AbortInLoop(Engine* engine) {
  engine->Cancel(&op_);
  // Ends what still waits to be sent, too.
  if (pinned_.InFlight()) Disconnect(op_.fd);
}

void BulkSendLane::Pump() {
  if (held_ != nullptr && parked()) return;
  if (held_ != nullptr) {
    (void)ack_looks_.Look(op_.fd, held_.get(), 0, sealer_.get());
    if (lost_ || !PumpAgain()) return;
  }
  while (owner_->open()) {
    int64_t retry_ns = 0;
    if (!loaded() && retiring_.load(std::memory_order_relaxed)) {
      if (!SaysRest()) return;
    } else if (!loaded()) {
      if (striper_->drained()) {
        LookWhileHeld();
        return;
      }
      if (!HasRoom(&retry_ns) || !PullChunk()) return;
    }
    iovec iov[2];
    const ssize_t sent = SendBy(sealer_.get(), settings_.seals, op_.fd, iov, Gather(iov));
    if (sent < 0) {
      if (errno == EINTR) continue;
      Broke(errno);
      return;
    }
    Advance(static_cast<size_t>(sent));
    if (loaded()) return;  // The socket is full.
  }
}

}  // namespace tcpx
