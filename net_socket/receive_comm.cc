#include "net_socket/receive_comm.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/socket.h"
#include "common/status.h"

namespace tcpx {
namespace {

// TCP_QUICKACK 0 lasts until the delayed-acknowledgement timer fires (40 ms at the least, TCP_DELACK_MIN of Linux); it
// is set again well before.
constexpr int64_t kAcksDelayedForNs = 4 * kMillisecond;
// So many lone reads more than others, and acknowledgements are delayed; so many others more, and they are not: a
// stream under bbr loses a third without them.
constexpr int kLoneScoreMax = 4;

// With SO_RCVLOWAT above what is queued the kernel sends the acknowledgement that every second segment asks for when
// the segment arrives, on the sender's CPU, and not at the end of our recvmsg, where a message would wait for it
// (__tcp_ack_snd_check and tcp_cleanup_rbuf, Linux 6.18): 2 us at 4 KiB. It has no meaning for non-blocking reads.
constexpr int kLaneZeroLowWater = 64 * 1024;

void SetLowWater(int fd, int bytes) { setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes)); }

}  // namespace

ReceiveComm::ReceiveComm(ConnectionSetup setup)
    : Comm(std::move(setup)),
      caller_driven_(runtime()->pool == nullptr),
      requests_(this, kRequestsMax),
      table_(static_cast<size_t>(kRequestsMax)),
      lane_zero_(&table_, &runtime()->stages) {
  // A buffer that the user made small may hold less than the mark.
  if (runtime()->options.rcvbuf < 0) SetLowWater(lane_fd(0), kLaneZeroLowWater);
  for (int lane = 1; lane < lane_count(); ++lane) {
    bulk_.push_back(std::make_unique<BulkReceiveLane>(this, lane, &table_));
    if (!caller_driven_) runtime()->pool->Attach(bulk_.back().get());
  }
}

absl::Status ReceiveComm::Receive(const ReceiveArgs& args, Request** request) {
  *request = nullptr;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return absl::OkStatus();
  if (failed()) return Refusal();
  if (args.count != 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("irecv: %d buffers, but this device announced maxRecvs 1", args.count));
  }
  if (table_.NextSlot().in_use) return absl::OkStatus();
  ReceiveRequest* slot = requests_.Take();
  if (slot == nullptr) return absl::OkStatus();
  slot->region = args.regions == nullptr ? nullptr : args.regions[0];
  slot->landing = table_.Post(static_cast<char*>(args.data[0]), args.bytes[0], args.tags == nullptr ? 0 : args.tags[0]);
  *request = slot;
  if (slot->landing->capacity > setup().express_bytes) ++bulk_posted_;
  if (caller_driven_) return absl::OkStatus();
  for (auto& lane : bulk_) {
    if (lane->TakeParked(table_.posted())) ProgressPool::Kick(lane.get());
  }
  return absl::OkStatus();
}

void ReceiveComm::Drive(const Landing& wanted) {
  PumpLaneZero(wanted);
  if (!caller_driven_) return;
  // Without a receive for bulk, bulk lanes can only bring what is too large, or an end: a look now and then is enough.
  if (bulk_posted_ == 0 && ++passes_ % 16 != 0) return;
  for (auto& lane : bulk_) lane->Pump();
}

void ReceiveComm::PumpLaneZero(const Landing& wanted) {
  if (failed()) return;
  iovec iov[ReceiveLane::kIovMax];
  msghdr message{};
  message.msg_iov = iov;
  message.msg_iovlen = static_cast<size_t>(lane_zero_.Prepare(iov));
  const bool staged_was_enough = wanted.done.load(std::memory_order_acquire);
  if (message.msg_iovlen > 0 && !staged_was_enough) {
    const ssize_t got = recvmsg(lane_fd(0), &message, MSG_DONTWAIT);
    if (got > 0) {
      const uint64_t completed = lane_zero_.messages_completed();
      lane_zero_.Advance(static_cast<size_t>(got));
      ChooseAcks(lane_zero_.between_frames() && lane_zero_.messages_completed() == completed + 1);
    } else if (got == 0) {
      lane_zero_.End();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
      lane_zero_.NothingCame();
    } else {
      Fail(ErrnoStatus(errno, "receive"), 0);
    }
  }
  if (!lane_zero_.status().ok()) Fail(lane_zero_.status(), 0);
}

// A read that brought exactly one message, whole, is the mark of a peer that waits for our answer; any other, of a
// stream.
void ReceiveComm::ChooseAcks(bool lone) {
  lone_score_ = std::clamp(lone_score_ + (lone ? 1 : -1), -kLoneScoreMax, kLoneScoreMax);
  if (lone_score_ == kLoneScoreMax) {
    const int64_t now = MonotonicNanos();
    if (now - acks_delayed_at_ns_ < kAcksDelayedForNs) return;
    acks_delayed_at_ns_ = now;
    (void)SetQuickAck(lane_fd(0), 0);
  } else if (lone_score_ == -kLoneScoreMax && acks_delayed_at_ns_ != 0) {
    acks_delayed_at_ns_ = 0;
    (void)SetQuickAck(lane_fd(0), 1);
  }
}

bool ReceiveComm::AllEnded() const {
  if (!lane_zero_.ended()) return false;
  return std::all_of(bulk_.begin(), bulk_.end(), [](const auto& lane) { return lane->ended(); });
}

bool ReceiveComm::LaneEnded() const {
  return lane_zero_.ended() || std::any_of(bulk_.begin(), bulk_.end(), [](const auto& lane) { return lane->ended(); });
}

absl::Status ReceiveComm::Test(Request* request, bool* done, int* sizes) {
  *done = false;
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return absl::OkStatus();
  ReceiveRequest* slot = static_cast<ReceiveRequest*>(request);
  if (!slot->in_use) return absl::FailedPreconditionError("test: the request was reported done before");
  const Landing& landing = *slot->landing;
  if (!landing.done.load(std::memory_order_acquire)) {
    const bool ended = AllEnded();
    Drive(landing);
    // Asked before the last look at the landing: what landed before the end counts.
    if (ended && !landing.done.load(std::memory_order_acquire)) {
      Fail(absl::UnavailableError("the peer closed the connection while a receive was posted"), 0);
    }
  }
  if (!landing.done.load(std::memory_order_acquire)) return failed() ? Refusal() : absl::OkStatus();
  *done = true;
  Finish(slot, sizes);
  return absl::OkStatus();
}

void ReceiveComm::Finish(ReceiveRequest* request, int* sizes) {
  Landing* landing = request->landing;
  if (sizes != nullptr) sizes[0] = static_cast<int>(landing->message_bytes.load(std::memory_order_relaxed));
  if (landing->capacity > setup().express_bytes) --bulk_posted_;
  landing->in_use = false;
  requests_.Give(request);
}

bool ReceiveComm::Idle() { return !InFlight(nullptr); }

bool ReceiveComm::InFlight(const MemoryRegion* region) {
  for (int i = 0; i < requests_.count(); ++i) {
    const ReceiveRequest& request = requests_.slot(i);
    if (!request.in_use || request.landing->done.load(std::memory_order_acquire)) continue;
    if (region == nullptr || request.region == region) return true;
    const Landing& landing = *request.landing;
    const bool overlaps = landing.data < region->data + region->bytes && landing.data + landing.capacity > region->data;
    if (request.region == nullptr && overlaps) return true;
  }
  return false;
}

// From here on the socket is polled, and every byte must count.
void ReceiveComm::StopWatching() { SetLowWater(lane_fd(0), 1); }

void ReceiveComm::Quiesce() {
  for (auto& lane : bulk_) ProgressPool::Detach(lane.get());
}

// An error record on lane 0, then the end on every lane.
void ReceiveComm::TellPeer(const absl::Status& status) {
  const std::string text(status.message().substr(0, 512));
  FrameHeader header;
  header.kind = FrameKind::kError;
  header.length = static_cast<uint32_t>(text.size());
  char record[kHeaderBytes + 512];
  EncodeHeader(header, record);
  std::memcpy(record + kHeaderBytes, text.data(), text.size());
  (void)!send(lane_fd(0), record, kHeaderBytes + text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  for (int lane = 0; lane < lane_count(); ++lane) shutdown(lane_fd(lane), SHUT_WR);
}

}  // namespace tcpx
