#include "net_socket/send/bulk_send_lane.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/clock.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/message/transfer_events.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/send/busy_lanes.h"
#include "net_socket/send/lane_rates.h"

namespace tcpx {
namespace {

// While a lane drains with nothing to pull.
constexpr int64_t kLookEveryNs = 2 * kMillisecond;

// The least round trip changes with the path only.
constexpr int64_t kRttEveryNs = 100 * kMillisecond;

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

BulkSendLane::BulkSendLane(LaneOwner* owner, const Settings& settings, Striper* striper, LaneRates* rates,
                           IdleLanes* idle, BusyLanes* busy)
    : owner_(owner),
      settings_(settings),
      striper_(striper),
      rates_(rates),
      idle_(idle),
      busy_(busy),
      rate_(settings.chunk_bytes_min),
      zero_copy_(settings.zero_copy) {
  op_.fd = settings.fd;
}

bool BulkSendLane::HasRoom(int64_t* retry_ns) {
  *retry_ns = 0;
  if (!settings_.paced_by_rate) return UnsentBytes(op_.fd) < kBulkUnsentBytes;
  const int64_t now = MonotonicNanos();
  const int64_t held = Look(now);
  if (!rates_->Carries(index())) {
    *retry_ns = now + LaneRates::kAskAgainNs;
    return false;
  }
  unsent_max_ = BusyLanes::UnsentMax(busy_->Count(now));
  const bool full = unsent_max_ >= 0 && UnsentBytes(op_.fd) >= unsent_max_;
  if (!full && held < rate_.held_max()) return true;
  *retry_ns = now + rate_.RetryAfterNs(held);
  return false;
}

int64_t BulkSendLane::Look(int64_t now) {
  const int64_t held = QueuedBytes(op_.fd);
  const uint64_t sent = bytes_sent_.load(std::memory_order_relaxed);
  rate_.Sample(now, sent, held, continuous_);
  looked_ns_ = now;
  continuous_ = false;
  RefreshRate(now);
  rates_->Looked(index(), now, sent - static_cast<uint64_t>(held));
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
  rates_->Set(index(), rate_.bytes_per_second());
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
  int64_t want = settings_.chunk_bytes;
  if (settings_.paced_by_rate) {
    want = std::min(want, rate_.chunk_max());
    if (unsent_max_ >= 0) want = std::min(want, unsent_max_);
    busy_->Note(looked_ns_, &busy_span_);
  }
  if (!striper_->Pull(static_cast<size_t>(want), rates_->Share(index()), &chunk_)) return false;
  const SendRequest& request = *chunk_.request;
  if (request.events != nullptr) request.events->Count(settings_.lane, chunk_.length, request.message_bytes);
  FrameHeader header;
  header.length = static_cast<uint32_t>(chunk_.length);
  header.sequence = request.sequence;
  header.offset = request.message_offset + chunk_.offset;
  header.message_bytes = request.message_bytes;
  header.tag = request.tag;
  EncodeHeader(header, header_);
  taken_ = 0;
  continuous_ = true;
  watching_ = settings_.paced_by_rate;
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
  idle_->Rest(index());
  return striper_->drained() || !idle_->Take(index());
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
  if (owner_->failed()) return;
  if (peer_closed_.load(std::memory_order_acquire)) return EndInLoop(engine);
  if (sending_ != nullptr || !NextChunkInLoop(engine)) return;
  if (taken_ == 0 && SubmitPinned(engine)) return;
  sending_ = &op_;
  op_.kind = IoOp::Kind::kSend;
  op_.iov_count = Gather(op_.iov);
  Submit(engine, &op_);
}

void BulkSendLane::EndInLoop(Engine* engine) {
  if (sending_ != nullptr) return engine->Cancel(sending_);
  if (chunk_.request == nullptr && striper_->drained()) return;
  owner_->FailLane(absl::UnavailableError("the peer closed the connection"), settings_.lane);
}

bool BulkSendLane::SubmitPinned(Engine* engine) {
  if (rest_of_ != nullptr || !zero_copy_.Wants(chunk_.length) || !engine->zero_copy()) return false;
  PinnedChunk* pinned = pinned_.Take();
  if (pinned == nullptr) return false;
  pinned->chunk = chunk_;
  std::memcpy(pinned->header, header_, kHeaderBytes);
  IoOp* op = &pinned->op;
  op->kind = IoOp::Kind::kSendZeroCopy;
  op->fd = op_.fd;
  op->owner = static_cast<PoolLane*>(this);
  op->iov_count = 2;
  op->iov[0] = {pinned->header, kHeaderBytes};
  op->iov[1] = {const_cast<char*>(chunk_.request->data + chunk_.offset), chunk_.length};
  chunk_.request = nullptr;
  sending_ = op;
  Submit(engine, op);
  return true;
}

// A send that EndInLoop has cancelled leaves its chunk, which EndInLoop then finds.
void BulkSendLane::FailUnlessTransient(int err) {
  if (IsTransientErrno(err) || (err == ECANCELED && peer_closed_.load(std::memory_order_relaxed))) return;
  owner_->FailLane(ErrnoStatus(err, "send"), settings_.lane);
}

// What the kernel did not take goes on as an ordinary chunk.
void BulkSendLane::CompletePinned(PinnedChunk* pinned, const Completion& completion) {
  if (completion.release) {
    pinned->released = true;
    zero_copy_.Notified(completion.result != 0);
    pinned_.Settle(pinned);
    return;
  }
  sending_ = nullptr;
  pinned->released = !completion.held;
  const size_t taken = completion.result > 0 ? static_cast<size_t>(completion.result) : 0;
  CountSent(taken);
  if (taken == kHeaderBytes + pinned->chunk.length) {
    pinned->taken = true;
    pinned_.Settle(pinned);
    return;
  }
  if (completion.result < 0 && RefusesZeroCopy(-completion.result)) {
    zero_copy_.Refused();
  } else if (completion.result < 0) {
    FailUnlessTransient(-completion.result);
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
  if (completion.result < 0) return FailUnlessTransient(-completion.result);
  if (op_.kind == IoOp::Kind::kSend) Advance(static_cast<size_t>(completion.result));
}

void BulkSendLane::AbortInLoop(Engine* engine) {
  engine->Cancel(&op_);
  // Ends what still waits to be sent, too.
  if (pinned_.InFlight()) Disconnect(op_.fd);
}

void BulkSendLane::Pump() {
  while (!owner_->failed()) {
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
      if (!IsTransientErrno(errno)) owner_->FailLane(ErrnoStatus(errno, "send"), settings_.lane);
      return;
    }
    Advance(static_cast<size_t>(sent));
    if (chunk_.request != nullptr) return;  // The socket is full.
  }
}

}  // namespace tcpx
