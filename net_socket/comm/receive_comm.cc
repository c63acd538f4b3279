#include "net_socket/comm/receive_comm.h"

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
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/transfer_times.h"
#include "net_socket/message/memory_region.h"
#include "net_socket/message/ring_size.h"
#include "net_socket/message/units.h"

namespace tcpx {
namespace {

// Steps of NCCL's buffers (NCCL_STEPS).
constexpr int64_t kSteps = 8;
// A step of its LL protocol, in lines of 16 bytes: 8 lines of each of 512 threads, unless it is told otherwise.
constexpr int64_t kLlStepBytes = 64 << 10;

size_t LlStepBytes(const Options& options) {
  return static_cast<size_t>(std::max(kLlStepBytes, options.ll_buffer_bytes / kSteps));
}

}  // namespace

ReceiveComm::ReceiveComm(ConnectionSetup setup)
    : Comm(std::move(setup), Direction::kReceive),
      caller_driven_(runtime()->pool == nullptr),
      requests_(this, kRequestsMax),
      table_(RingSize(kRequestsMax * this->setup().max_receives), this->setup().max_receives > 1),
      lane_zero_(&table_, &runtime()->stages),
      pattern_(path().times_long_messages),
      tuning_(lane_fd(0), path(), this->setup().heals) {
  if (this->setup().max_receives > 1) credits_ = std::make_unique<CreditQueue>();
  if (credits_ != nullptr && this->setup().heals) credits_->Keep();
  bulk_.resize(static_cast<size_t>(lane_count() - 1));
  sealed_ = runtime()->options.encrypt || seals(0).sealer != nullptr;
  intake_.OpenBy(std::move(seals(0).opener));
  sealer_ = std::move(seals(0).sealer);
  for (int lane = 1; lane < lane_count(); ++lane) {
    if (lane_fd(lane) >= 0) MakeLane(lane);
  }
  stands_ = true;
  for (int lane = 0; lane < lane_count(); ++lane) LeaveAnswering(lane);
  Stand();
}

void ReceiveComm::MakeLane(int lane) {
  auto& bulk = bulk_[static_cast<size_t>(lane) - 1];
  BulkReceiveLane::Settings settings;
  settings.fd = lane_fd(lane);
  settings.lane = lane;
  settings.opened = stands_;
  bulk = std::make_unique<BulkReceiveLane>(&failure(), settings, &table_, &runtime()->stages);
  bulk->OpenBy(std::move(seals(lane).opener));
  seals(lane).sealer = nullptr;  // It says nothing.
  if (!caller_driven_) runtime()->pool->Attach(bulk.get(), setup().device);
}

void ReceiveComm::LaneResumed(int lane, Seals* seals) {
  Comm::LaneResumed(lane, seals);
  if (lane > 0) LeaveAnswering(lane);
}

// The kernel takes a socket that has answered for one that will answer again, and holds acknowledgements back for that:
// the sender then takes up to 40 ms for the round trip. A lane answers its hello, or carries credits, and no more.
// Of a bulk lane that heals the sender awaits them on the same host too; of lane 0 the tuning knows when.
void ReceiveComm::LeaveAnswering(int lane) {
  if (!path().delays_acks || (lane > 0 && setup().heals)) (void)SetQuickAck(lane_fd(lane), 1);
}

absl::Status ReceiveComm::Receive(const ReceiveArgs& args, Request** request) {
  *request = nullptr;
  if (!mutex_.try_lock()) return absl::OkStatus();
  MutexLock lock(mutex_, std::adopt_lock);
  if (!failure().open()) return failure().Refusal();
  if (args.count < 1 || args.count > setup().max_receives) {
    return absl::FailedPreconditionError(
        absl::StrFormat("irecv: %d buffers, but this device announced maxRecvs %d", args.count, setup().max_receives));
  }
  if (early_count_ > 0) Reclaim();
  if (!table_.HasRoom(args.count) || (credits_ != nullptr && !credits_->HasRoom())) return absl::OkStatus();
  ReceiveRequest* slot = requests_.Take();
  if (slot == nullptr) return absl::OkStatus();
  Post(args, slot);
  *request = slot;
  if (credits_ != nullptr) {
    credits_->Push(slot->receives[0]->sequence, args.tags, args.count);
    SayCredits();
  }
  if (caller_driven_) return absl::OkStatus();
  for (auto& lane : bulk_) {
    if (lane != nullptr && lane->TakeParked(table_.posted())) ProgressPool::Kick(lane.get());
  }
  return absl::OkStatus();
}

void ReceiveComm::Post(const ReceiveArgs& args, ReceiveRequest* request) {
  request->count = args.count;
  request->optional = args.optional_completion;
  request->early = false;
  request->bulk = false;
  if (times() != nullptr) SeeCaller();
  const int64_t now_ns = times() == nullptr ? 0 : times()->Begin(IsBulk(args.bytes[0]));
  for (int i = 0; i < args.count; ++i) {
    if (times() != nullptr) table_.NextSlot().Begin(now_ns);
    request->regions[i] = args.regions == nullptr ? nullptr : args.regions[i];
    void* const parent = args.profiler_parents == nullptr ? nullptr : args.profiler_parents[i];
    request->receives[i] =
        table_.Post(static_cast<char*>(args.data[i]), args.bytes[i], args.tags == nullptr ? 0 : args.tags[i],
                    events().Begin(table_.next_index(), parent), RouteOf(args, i));
    if (args.bytes[i] > setup().express_bytes) request->bulk = true;
  }
  if (request->bulk) ++bulk_posted_;
}

// NCCL marks receives of LL and LL128 by the hint, unless the user forbade it the hint: then all may be such. It never
// groups them (2.24.3 to 2.30: only point-to-point connections are shared, which know LL and Simple, no LL128, and whose LL
// stays in host memory). Interfaces up to v8 know no hint: there the kernel writes, as in NCCL's own Socket transport, and
// LL128 has to be asked for. What is opened in place is there before it is known to be authentic: where anybody may read
// along it is opened elsewhere, in a group too, of whose LL no hint tells.
PayloadRoute ReceiveComm::RouteOf(const ReceiveArgs& args, int member) const {
  PayloadRoute way;
  const bool hinted = runtime()->options.nccl_optional_recv && (args.knows_hint || !sealed_);
  const bool grouped_ll = sealed_ && args.count > 1 && args.bytes[member] <= LlStepBytes(runtime()->options);
  way.flag_lines = args.optional_completion || (args.count == 1 && !hinted) || grouped_ll;
  if (staging_ == nullptr || args.regions == nullptr || args.regions[member] == nullptr) return way;
  if (args.regions[member]->gpu == nullptr) return way;
  way.sink = staging_.get();
  return way;
}

void ReceiveComm::OpenStaging(std::unique_ptr<GpuAllowance> slots) {
  staging_ = std::make_unique<ReceiveStaging>(std::move(slots));
}

void ReceiveComm::MoveStaged() {
  if (failed()) return;
  const absl::Status status = staging_->Poll();
  if (!status.ok()) failure().Fail(status, kNoLane);
  if (caller_driven_ || !staging_->HasRoom()) return;
  for (auto& lane : bulk_) {
    if (lane != nullptr && lane->TakeStalled()) ProgressPool::Kick(lane.get());
  }
}

// A peer that has gone needs no credits; what that means, reading says.
absl::Status ReceiveComm::SendCredits() {
  while (!credits_->empty() && !zero_lost_) {
    const ssize_t sent = SayOnZero(credits_->data(), credits_->bytes());
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0 && errno == EPROTO && CantSeal()) return absl::InternalError(kCantSeal);
    if (sent < 0 && failure().heals()) break;  // They go on with another socket.
    credits_->Advance(sent < 0 ? credits_->bytes() : static_cast<size_t>(sent));
    tuning_.Answered();
    LeaveAnswering(0);
  }
  credits_wait_.store(!credits_->empty(), std::memory_order_relaxed);
  return absl::OkStatus();
}

bool ReceiveComm::CantSeal() {
  MutexLock lock(seal_mutex_);
  return sealer_ != nullptr && sealer_->broken();
}

void ReceiveComm::SayCredits() {
  const absl::Status said = SendCredits();
  if (!said.ok()) failure().Fail(said, 0);
}

ssize_t ReceiveComm::SayOnZero(const char* data, size_t bytes) {
  if (!sealed_) return send(lane_fd(0), data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
  MutexLock lock(seal_mutex_);
  const iovec piece{const_cast<char*>(data), bytes};
  errno = ENOKEY;
  return sealer_ == nullptr ? -1 : sealer_->Send(lane_fd(0), &piece, 1);
}

// What is sealed of a credit and not sent would take the record's bytes for its own.
void ReceiveComm::SayErrorOnZero(const char* record, size_t bytes) {
  if (!sealed_) {
    (void)send(lane_fd(0), record, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    return;
  }
  const iovec piece{const_cast<char*>(record), bytes};
  if (sealer_ != nullptr && !sealer_->pending()) (void)sealer_->Send(lane_fd(0), &piece, 1);
  sealer_ = nullptr;  // It was the last: what is left of it is nobody's credit.
}

void ReceiveComm::Drive(const PostedReceive* wanted) {
  if (credits_ != nullptr && !credits_->empty()) SayCredits();
  PumpLaneZero(wanted);
  if (!caller_driven_) return;
  // Without a receive for bulk, bulk lanes can only bring what is too large, or an end: a look now and then is enough.
  if (bulk_posted_ == 0 && ++passes_ % 16 != 0) return;
  for (auto& lane : bulk_) {
    if (lane != nullptr) lane->Pump();
  }
}

void ReceiveComm::PumpLaneZero(const PostedReceive* wanted) {
  if (!failure().open() || LaneZeroWaits()) return;
  iovec iov[ReceiveLane::kIovMax];
  const int places = lane_zero_.Prepare(iov);
  const bool staged_was_enough = wanted->done.load(std::memory_order_acquire);
  if (places > 0 && !staged_was_enough) {
    const ssize_t got = intake_.Receive(lane_fd(0), iov, places);
    const int err = errno;
    zero_holds_ = intake_.holds();
    if (got > 0) {
      const uint64_t completed = lane_zero_.messages_completed();
      lane_zero_.Advance(static_cast<size_t>(got));
      NotePattern(static_cast<int>(lane_zero_.messages_completed() - completed));
    } else if (got < 0 && IsTransientErrno(err)) {
      lane_zero_.NothingCame();
    } else {
      LaneZeroEnded(got < 0 ? err : 0);
    }
  }
  if (places == 0 || lane_zero_.parked()) intake_.Rest();
  if (!lane_zero_.status().ok()) failure().Fail(lane_zero_.status(), 0);
}

void ReceiveComm::NotePattern(int messages) {
  PatternDetector::Read read;
  read.messages = messages;
  read.between_frames = lane_zero_.between_frames();
  read.message_bytes = lane_zero_.current().message_bytes;
  const TrafficPattern pattern = pattern_.Saw(read, MonotonicNanos);
  tuning_.Keep(pattern, lane_zero_.TakeLargest());
  lane_zero_.ReadAhead(pattern != TrafficPattern::kLargePingPong);
}

bool ReceiveComm::AllEnded() const {
  if (!lane_zero_.ended()) return false;
  return std::all_of(bulk_.begin(), bulk_.end(), [](const auto& lane) { return lane == nullptr || lane->ended(); });
}

bool ReceiveComm::LaneEnded() const {
  const auto ended = [](const auto& lane) { return lane != nullptr && lane->ended(); };
  return lane_zero_.ended() || std::any_of(bulk_.begin(), bulk_.end(), ended);
}

absl::Status ReceiveComm::Test(Request* request, bool* done, int* sizes) {
  *done = false;
  if (!mutex_.try_lock()) return absl::OkStatus();
  MutexLock lock(mutex_, std::adopt_lock);
  ReceiveRequest* slot = static_cast<ReceiveRequest*>(request);
  if (!slot->in_use || slot->early) {
    return absl::FailedPreconditionError("test: the request was reported done before");
  }
  bool may_report = MayReport(*slot);
  if (!may_report) {
    if (times() != nullptr) times()->Called();
    const bool ended = AllEnded() && (staging_ == nullptr || staging_->idle());
    Drive(Wanted(*slot));
    if (staging_ != nullptr) MoveStaged();
    if (!failed()) events().Publish();
    may_report = MayReport(*slot);
    // Asked before the last look at the receives: what landed before the end counts.
    if (ended && !may_report) {
      failure().Fail(absl::UnavailableError("the peer closed the connection while a receive was posted"), 0);
    }
  }
  if (!may_report) {
    if (!failed()) return absl::OkStatus();
    EndAllEvents(*slot);
    return failure().Refusal();
  }
  *done = true;
  Report(slot, sizes);
  return absl::OkStatus();
}

// NCCL must always have a request to test while data is missing: else nobody drives the lanes, and errors stay unseen.
// So the youngest is held until it has landed and, because messages may overtake each other on other lanes, all that
// were reported early have landed too.
bool ReceiveComm::MayReport(const ReceiveRequest& request) {
  const bool youngest = request.last_sequence() + 1 == table_.posted();
  if (request.optional && !youngest && !failed()) return true;
  if (!request.landed()) return false;
  if (!youngest || early_count_ == 0) return true;
  Reclaim();
  return early_count_ == 0;
}

// What keeps `request` from being reported.
const PostedReceive* ReceiveComm::Wanted(const ReceiveRequest& request) const {
  const PostedReceive* missing = request.Missing();
  if (missing == nullptr && early_count_ > 0) missing = early_[0]->Missing();
  return missing != nullptr ? missing : request.receives[0];
}

void ReceiveComm::EndAllEvents(const ReceiveRequest& request) {
  for (int i = 0; i < request.count; ++i) events().End(request.receives[i]->events);
}

// The size of a message of which nothing has come yet is 0; NCCL only profiles the sizes of optional receives.
void ReceiveComm::Report(ReceiveRequest* request, int* sizes) {
  EndAllEvents(*request);
  for (int i = 0; sizes != nullptr && i < request->count; ++i) {
    const uint64_t bytes = request->receives[i]->message_bytes.load(std::memory_order_relaxed);
    sizes[i] = bytes == kUnknownBytes ? 0 : static_cast<int>(bytes);
  }
  if (request->landed()) {
    Release(request);
  } else {
    request->early = true;
    early_[early_count_++] = request;
  }
}

// Of one that has landed, also where it was reported earlier: before, its size is not known. A member of a group counts
// for all.
void ReceiveComm::KeepTime(const ReceiveRequest& request) {
  const PostedReceive& receive = *request.receives[request.count - 1];
  const uint64_t bytes = receive.message_bytes.load(std::memory_order_relaxed);
  const uint64_t known = bytes == kUnknownBytes ? 0 : bytes;
  const bool youngest = request.last_sequence() + 1 == table_.posted();
  times()->End({receive.begun_ns, receive.first_ns, youngest ? int64_t{receive.last_ns} : 0, known, IsBulk(known)});
}

void ReceiveComm::Release(ReceiveRequest* request) {
  if (times() != nullptr) KeepTime(*request);
  if (request->bulk) --bulk_posted_;
  for (int i = 0; i < request->count; ++i) {
    request->receives[i]->in_use = false;
    Count(request->receives[i]->message_bytes.load(std::memory_order_relaxed));
  }
  requests_.Give(request);
}

// Frees the slots of receives that were reported early and have landed since.
void ReceiveComm::Reclaim() {
  int left = 0;
  for (int i = 0; i < early_count_; ++i) {
    if (early_[i]->landed()) {
      Release(early_[i]);
    } else {
      early_[left++] = early_[i];
    }
  }
  early_count_ = left;
}

bool ReceiveComm::InFlight(const MemoryRegion* region) {
  for (int i = 0; i < requests_.count(); ++i) {
    const ReceiveRequest& request = requests_.slot(i);
    if (!request.in_use || request.landed()) continue;
    if (region == nullptr) return true;
    for (int member = 0; member < request.count; ++member) {
      const PostedReceive& receive = *request.receives[member];
      if (region->UsedBy(request.regions[member], receive.data, receive.capacity)) return true;
    }
  }
  return false;
}

// From here on the socket is polled, and every byte must count.
void ReceiveComm::StopWatching() { tuning_.Stop(); }

void ReceiveComm::Quiesce() {
  for (auto& lane : bulk_) {
    if (lane != nullptr) ProgressPool::Detach(lane.get());
  }
  if (staging_ != nullptr && failed()) staging_->Abandon();
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
  // Not into the middle of a credit; the end alone tells the peer too.
  const bool whole = !credits_wait_.load(std::memory_order_relaxed);
  MutexLock lock(seal_mutex_);  // A new socket's answer goes first, sealed or not.
  if (whole) SayErrorOnZero(record, kHeaderBytes + text.size());
  for (int lane = 0; lane < lane_count(); ++lane) shutdown(lane_fd(lane), SHUT_WR);
}

}  // namespace tcpx
