#include "net_socket/send/bulk_send_lane.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "net_socket/message/transfer_events.h"
#include "net_socket/send/tuning.h"

namespace tcpx {
namespace {

// A zero-copy send that copying may well serve: no such operation on this kernel or socket, or no memory to pin
// (RLIMIT_MEMLOCK counts without CAP_IPC_LOCK).
bool RefusesZeroCopy(int err) {
  return err == EOPNOTSUPP || err == EINVAL || err == ENOMEM || err == ENOBUFS || err == EFAULT;
}

// The earlier of two times; 0 is none.
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
      striper_(striper),
      idle_(idle),
      stream_(owner, {settings.fd, settings.lane, settings.heals ? tuning::kHeldChunks : 0, 0, settings.seals}),
      pace_(&stream_, settings.pace, striper, rates, busy),
      zero_copy_(settings.zero_copy),
      pinned_(!settings.heals) {
  op_.fd = settings.fd;
}

BulkSendLane::Next BulkSendLane::Load(int64_t* retry_ns) {
  while (!frame_.loaded()) {
    *retry_ns = 0;
    if (retiring_.load(std::memory_order_acquire)) {
      if (SaysClose()) continue;
      if (!drained()) *retry_ns = MonotonicNanos() + tuning::kPaceLookNs;
      return Next::kRetires;
    }
    if (striper_->drained()) return Next::kNothing;
    if (!pace_.HasRoom(retry_ns)) return Next::kNoRoom;
    Chunk chunk;
    if (!pace_.Pull(&chunk)) continue;
    const SendRequest& request = *chunk.request;
    if (request.events != nullptr) request.events->Count(stream_.lane(), chunk.length, request.message_bytes);
    frame_.Begin(chunk);
    said_ = false;
    if (HeldFrames* const held = stream_.held()) {
      held->Begin(frame_.header(), {frame_.payload(), chunk.length, 0}, chunk.request);
    }
  }
  return Next::kLoaded;
}

bool BulkSendLane::LoadInLoop(Engine* engine) {
  if (frame_.loaded()) return true;
  for (;;) {
    switch (Load(&retry_at_ns_)) {
      case Next::kLoaded:
        retry_at_ns_ = 0;
        if (!striper_->drained()) idle_->WakeNext();
        return true;
      case Next::kNothing:
        idle_->Idle(index());
        if (!striper_->drained() && idle_->Take(index())) continue;  // Else the next post kicks the lane.
        retry_at_ns_ = pace_.LookWhileHeld();
        return false;
      case Next::kNoRoom:
        idle_->WakeNext();
        if (retry_at_ns_ != 0) return false;
        op_.kind = IoOp::Kind::kWritable;
        sending_ = &op_;
        Submit(engine, &op_);
        return false;
      case Next::kRetires:
        idle_->WakeNext();
        return false;
    }
  }
}

bool BulkSendLane::SaysClose() {
  if (!said_ && stream_.held()->room() > 0) {
    frame_.BeginRecord(FrameKind::kClose);
    stream_.held()->Begin(frame_.header(), {}, nullptr);
    return true;
  }
  stream_.LookForAcks();
  if (said_ && stream_.held()->empty()) drained_.store(true, std::memory_order_release);
  return false;
}

void BulkSendLane::Advance(size_t bytes) {
  const size_t left = frame_.left();
  bytes = std::min(bytes, left);
  CountSent(bytes, left);
  frame_.Took(bytes);
  if (bytes < left) return;
  const Chunk sent = frame_.chunk();
  if (frame_.is_record()) {
    frame_.Clear();
    said_ = true;
    return;
  }
  stream_.counts().chunks.Add();
  frame_.Clear();
  if (rest_of_ == nullptr) {
    if (stream_.held() == nullptr) Striper::Sent(sent);  // The request may be gone after this.
    return;
  }
  rest_of_->taken = true;
  pinned_.Settle(rest_of_);
  rest_of_ = nullptr;
}

void BulkSendLane::CountSent(size_t bytes, size_t offered) {
  if (stream_.held() != nullptr) stream_.held()->Sent(bytes);
  stream_.Count(bytes, offered);
}

void BulkSendLane::AdvanceInLoop(Engine* engine) {
  if (next_socket_.waiting() && !ReplaceInLoop(engine)) return;
  // Also while a send waits: the peer may take nothing more before one of those in front is done.
  const int64_t look_at_ns = stream_.held() == nullptr ? 0 : stream_.LookForAcks(MonotonicNanos());
  SendInLoop(engine);
  retry_at_ns_ = Earlier(retry_at_ns_, look_at_ns);
}

void BulkSendLane::SendInLoop(Engine* engine) {
  if (!owner_->open()) return;
  if (peer_closed_.load(std::memory_order_acquire)) return EndInLoop(engine);
  if (sending_ != nullptr) return;
  if (stream_.lost()) {
    idle_->WakeNext();  // The work that woke this lane is for one that is up.
    return;
  }
  if (!stream_.CanSeal()) return;
  if (stream_.held() != nullptr && stream_.held()->resending()) {
    again_ = true;
    return SubmitSend(engine, stream_.held()->GatherAgain(op_.iov, IoOp::kIovMax));
  }
  if (!LoadInLoop(engine)) return;
  if (!frame_.begun() && SubmitPinned(engine)) return;
  SubmitSend(engine, frame_.Gather(op_.iov));
}

void BulkSendLane::SubmitSend(Engine* engine, int count) {
  op_.kind = IoOp::Kind::kSend;
  op_.iov_count = count;
  if (Sealer* const sealer = stream_.sealer()) {
    if (!sealer->pending() && !sealer->Seal(op_.iov, count)) {
      (void)stream_.CanSeal();
      return;
    }
    op_.iov[0] = sealer->rest();
    op_.iov_count = 1;
  }
  sending_ = &op_;
  Submit(engine, &op_);
}

size_t BulkSendLane::TookOf(int result) {
  const size_t bytes = static_cast<size_t>(result);
  return stream_.sealer() == nullptr ? bytes : stream_.sealer()->Took(bytes);
}

void BulkSendLane::EndInLoop(Engine* engine) {
  if (sending_ != nullptr) return engine->Cancel(sending_);
  const HeldFrames* const held = stream_.held();
  if (held != nullptr) stream_.PeerTook(peer_took_);
  const bool all_sent = frame_.chunk().request == nullptr && striper_->drained();
  // That a lane is closed need not be heard.
  if (all_sent && (held == nullptr || held->all_acked() || !held->awaited())) return;
  owner_->FailLane(absl::UnavailableError("the peer closed the connection"), stream_.lane());
}

bool BulkSendLane::SubmitPinned(Engine* engine) {
  if (frame_.is_record() || rest_of_ != nullptr) return false;
  const Chunk& chunk = frame_.chunk();
  if (!zero_copy_.Wants(chunk.length) || !engine->zero_copy()) return false;
  Sealer* const sealer = stream_.sealer();
  // Longer chunks are sealed piece by piece, and copied by the kernel.
  const size_t room = sealer == nullptr ? 0 : sealer->RoomFor(kHeaderBytes + chunk.length);
  if (room > kSealBufferBytes || (sealer != nullptr && sealer->pending())) return false;
  PinnedChunk* pinned = pinned_.Take();
  if (pinned == nullptr) return false;
  pinned->chunk = chunk;
  std::memcpy(pinned->header, frame_.header(), kHeaderBytes);
  if (stream_.held() != nullptr) pinned->frame = stream_.held()->Pin();
  IoOp* op = &pinned->op;
  op->kind = IoOp::Kind::kSendZeroCopy;
  op->fd = op_.fd;
  op->owner = static_cast<PoolLane*>(this);
  op->iov_count = 2;
  op->iov[0] = {pinned->header, kHeaderBytes};
  op->iov[1] = {const_cast<char*>(frame_.payload()), chunk.length};
  if (sealer != nullptr) {
    pinned->sealed = sealer->LendRoom();
    if (!sealer->SealInto(pinned->sealed.get(), kSealBufferBytes, op->iov, 2)) return !stream_.CanSeal();
    op->iov[0] = sealer->rest();
    op->iov_count = 1;
  }
  frame_.Clear();
  sending_ = op;
  Submit(engine, op);
  return true;
}

// What the kernel did not take goes on as an ordinary chunk; where it is sealed, from where it lies.
void BulkSendLane::CompletePinned(PinnedChunk* pinned, const Completion& completion) {
  HeldFrames* const held = stream_.held();
  if (completion.release) {
    pinned->released = true;
    zero_copy_.Notified(completion.result != 0);
    if (completion.result != 0) stream_.counts().copied.Add();
    if (held != nullptr) held->Unpin(pinned->frame);
    pinned_.Settle(pinned);
    return;
  }
  sending_ = nullptr;
  pinned->released = !completion.held;
  if (held != nullptr && pinned->released) held->Unpin(pinned->frame);
  const size_t taken = completion.result > 0 ? TookOf(completion.result) : 0;
  const size_t frame = kHeaderBytes + pinned->chunk.length;
  if (taken > 0) CountSent(taken, frame);
  if (completion.held) stream_.counts().zero_copy.Add();
  if (taken == frame) {
    stream_.counts().chunks.Add();
    pinned->taken = true;
    pinned_.Settle(pinned);
    return;
  }
  if (completion.result < 0 && RefusesZeroCopy(-completion.result)) {
    zero_copy_.Refused();
  } else if (completion.result < 0) {
    Broke(-completion.result);
  }
  frame_.Resume(pinned->chunk, taken);
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
    stream_.held()->SentAgain(TookOf(completion.result));
  } else if (op_.kind == IoOp::Kind::kSend) {
    Advance(TookOf(completion.result));
  }
}

// Cancelled: for the sake of another socket, or by EndInLoop, which finds the chunk that was left.
void BulkSendLane::Broke(int err) {
  if (err == ECANCELED && (stream_.held() != nullptr || peer_closed_.load(std::memory_order_relaxed))) return;
  stream_.Broke(err);
}

void BulkSendLane::AbortInLoop(Engine* engine) {
  engine->Cancel(&op_);
  // Ends what still waits to be sent, too.
  if (pinned_.InFlight()) Disconnect(op_.fd);
}

bool BulkSendLane::ReplaceInLoop(Engine* engine) {
  if (sending_ != nullptr) {
    engine->Cancel(sending_);
    return false;
  }
  engine->Forget(op_.fd);
  const absl::Status replaced = Replace(next_socket_.Take());
  if (!replaced.ok()) owner_->FailLane(replaced, stream_.lane());
  return true;
}

absl::Status BulkSendLane::Replace(SocketOffer offer) {
  if (!offer.closes) {
    drained_.store(false, std::memory_order_relaxed);
    pace_.Restart();
  }
  return stream_.Replace(std::move(offer));
}

void BulkSendLane::Pump() {
  if (stream_.held() != nullptr) {
    (void)stream_.LookForAcks(0);
    if (stream_.lost()) return;
    const int err = stream_.SendAgain();
    if (err != 0) return Broke(err);
  }
  while (owner_->open()) {
    int64_t retry_ns = 0;
    const Next next = Load(&retry_ns);
    if (next == Next::kNothing) pace_.LookWhileHeld();
    if (next != Next::kLoaded) return;
    iovec iov[2];
    const ssize_t sent = stream_.Send(iov, frame_.Gather(iov));
    if (sent < 0) {
      if (errno == EINTR) continue;
      return Broke(errno);
    }
    Advance(static_cast<size_t>(sent));
    if (frame_.loaded()) return;  // The socket is full.
  }
}

}  // namespace tcpx
