#include "net_socket/comm/send_comm.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/clock.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/transfer_times.h"
#include "net_socket/message/memory_region.h"
#include "net_socket/message/ring_size.h"
#include "net_socket/send/send_again.h"

namespace tcpx {
namespace {

// A lone message up to this size is copied beside its header and sent as one buffer: about 4 % at 8 bytes
// (docs/experiments.md).
constexpr size_t kLoneBytesMax = 2048;

// A lone frame shorter than this is padded to it. The receiver's kernel acknowledges segments below TCP_MSS_DEFAULT
// (536, linux/tcp.h) at once, inside its system call, however TCP_QUICKACK stands; that costs 2 us a message.
constexpr size_t kLoneFrameBytesMin = 600;

// A request that was done for less before it was tested has not waited for its test.
constexpr int64_t kWorthALookNs = 10 * kMillisecond;

// Frames of lane 0 that may be without an acknowledgement, where lanes heal, and room for copies of their payload. What
// finds no room, or is longer than kCopiedPayloadBytesMax, is done when it is acknowledged.
constexpr size_t kHeldFrames = 256;
constexpr size_t kCopyBytes = 256 << 10;

uint16_t LonePadding(size_t bytes) {
  const size_t frame = kHeaderBytes + bytes;
  return frame < kLoneFrameBytesMin ? static_cast<uint16_t>(kLoneFrameBytesMin - frame) : 0;
}

}  // namespace

SendComm::SendComm(ConnectionSetup setup)
    : Comm(std::move(setup), Direction::kSend),
      express_bytes_(this->setup().express_bytes),
      caller_driven_(runtime()->pool == nullptr),
      seals_(runtime()->options.encrypt || seals(0).sealer != nullptr),
      requests_(this, kRequestsMax * this->setup().max_receives),
      held_(this->setup().heals ? std::make_unique<HeldFrames>(kHeldFrames, kCopyBytes) : nullptr),
      queue_(RingSize(PostedMax()), kChunkBytesMax, held_.get()),
      rates_(PilotSettings()),
      idle_(std::max(lane_count() - 1, 1)),
      watch_(std::make_unique<PeerWatch>(static_cast<PeerWatch::Owner*>(this), this->setup().max_receives)) {
  if (lane_count() > 1) {
    const Options& options = runtime()->options;
    striper_ = std::make_unique<Striper>(
        RingSize(PostedMax()),
        Striper::Limits{static_cast<size_t>(options.chunk_bytes_min), static_cast<size_t>(options.chunk_bytes)});
  }
  bulk_.resize(static_cast<size_t>(lane_count() - 1));
  moving_.resize(static_cast<size_t>(lane_count()));
  parking_.resize(static_cast<size_t>(lane_count()));
  offered_park_.resize(static_cast<size_t>(lane_count()));
  for (int lane = 1; lane < lane_count(); ++lane) {
    if (lane_fd(lane) >= 0) MakeLane(lane);
  }
  sealer_ = std::move(seals(0).sealer);
  std::vector<int> fds;
  std::vector<std::unique_ptr<Opener>> openers;
  for (int lane = 0; lane < lane_count(); ++lane) {
    fds.push_back(lane_fd(lane));
    openers.push_back(std::move(seals(lane).opener));
  }
  watch_->StartInLoop(&runtime()->reactor, fds, std::move(openers));
  Stand();
}

int SendComm::PostedMax() const { return requests_.count() + (runtime()->gpu != nullptr ? GpuAllowance::kSlots : 0); }

void SendComm::MakeLane(int lane) {
  const Options& options = runtime()->options;
  BulkSendLane::Settings settings;
  settings.fd = lane_fd(lane);
  settings.lane = lane;
  settings.paced_by_rate = path().paced_by_rate;
  settings.zero_copy = path().zero_copy;
  settings.chunk_bytes = options.chunk_bytes;
  settings.chunk_bytes_min = options.chunk_bytes_min;
  settings.heals = setup().heals;
  settings.seals = seals_;
  auto& made = bulk_[static_cast<size_t>(lane) - 1];
  made = std::make_unique<BulkSendLane>(&failure(), settings, striper_.get(), &rates_, &idle_,
                                        runtime()->busy_lanes.get());
  made->SealBy(std::move(seals(lane).sealer));
  idle_.Enter(lane - 1, made.get());
  if (!caller_driven_) runtime()->pool->Attach(made.get(), setup().device);
}

SendComm::~SendComm() {
  // Behind the functions that unwatch its descriptors.
  runtime()->reactor.Post([watch = std::shared_ptr<PeerWatch>(std::move(watch_))] {});
}

absl::Status SendComm::Send(const SendArgs& args, Request** request) {
  *request = nullptr;
  if (!mutex_.try_lock()) return absl::OkStatus();
  MutexLock lock(mutex_, std::adopt_lock);
  FailIfPeerGone();
  if (!failure().open()) return failure().Refusal();
  if (args.bytes > kMessageBytesMax) return absl::InvalidArgumentError("isend: a message is at most 1 TiB long");
  SendRequest* slot = Prepare(args);
  if (slot == nullptr) {
    MoveAll();  // Whoever repeats isend and tests nothing waits for the peer, who may wait for what was posted before.
    return absl::OkStatus();
  }
  *request = slot;
  if (staging_ == nullptr) {
    PostToLanes(slot);
  } else {
    PostStaged(slot, args.region != nullptr && args.region->gpu != nullptr);
  }
  if (times() != nullptr && slot->done()) slot->last_ns = times()->latest_ns();
  return absl::OkStatus();
}

void SendComm::PostToLanes(SendRequest* request) {
  if (striper_ == nullptr || request->message_bytes <= express_bytes_) {
    PostExpress(request);
  } else {
    PostBulk(request);
  }
}

void SendComm::PostStaged(SendRequest* request, bool on_gpu) {
  if (!on_gpu && staging_->idle()) {
    PostToLanes(request);
    return;
  }
  staging_->Push(request, on_gpu);
  MoveStaged();
}

void SendComm::MoveStaged() {
  if (failed()) return;
  const absl::Status status = staging_->Poll();
  if (!status.ok()) failure().Fail(status, kNoLane);
  while (SendRequest* ready = failed() ? nullptr : staging_->TakeReady()) PostToLanes(ready);
}

void SendComm::OpenStaging(std::unique_ptr<GpuAllowance> slots) {
  staging_ = std::make_unique<SendStaging>(std::move(slots), requests_.count());
}

SendRequest* SendComm::Prepare(const SendArgs& args) {
  SendRequest* slot = requests_.Take();
  if (slot == nullptr) return nullptr;
  uint64_t sequence = 0;
  if (!NextSequence(args.tag, &sequence)) {
    requests_.Give(slot);
    if (times() != nullptr) times()->Refused();
    return nullptr;
  }
  slot->sequence = sequence;
  slot->data = static_cast<const char*>(args.data);
  slot->bytes = args.bytes;
  slot->message_bytes = args.bytes;
  slot->tag = args.tag;
  slot->region = args.region;
  slot->events = events().Begin(requests_.index(slot), args.profiler_parent);
  slot->left.store(Units(args.bytes), std::memory_order_relaxed);
  if (times() != nullptr) {
    SeeCaller();
    slot->begun_ns = times()->Begin(IsBulk(args.bytes));
    slot->last_ns = 0;
  }
  return slot;
}

bool SendComm::NextSequence(int32_t tag, uint64_t* sequence) {
  if (setup().max_receives > 1) return watch_->TakeCredit(tag, sequence);
  *sequence = next_sequence_++;
  return true;
}

void SendComm::PostExpress(SendRequest* request) {
  if (request->message_offset == 0) events().CountWhole(request->events, 0, request->message_bytes);
  counts_.chunks.Add(std::max<size_t>(1, (request->bytes + kChunkBytesMax - 1) / kChunkBytesMax));
  const bool lone = requests_.in_use() == 1;
  // Parts of one staged message may wait before it.
  if (lone && queue_.empty() && request->bytes <= kLoneBytesMax) {
    SendLone(request);
    return;
  }
  queue_.Push(request, 0);
  if (lone || queue_.waiting_bytes() >= SendQueue::kGatherBytes) Flush();
}

void SendComm::SendLone(SendRequest* request) {
  if (held_ != nullptr && (zero_lost_ || held_->crowded() || held_->resending())) {
    queue_.Push(request, 0);
    Flush();
    return;
  }
  const uint16_t padding = path().pads_lone_frames ? LonePadding(request->bytes) : 0;
  queue_.Push(request, padding);
  char frame[kHeaderBytes + kLoneBytesMax];
  const size_t frame_bytes = kHeaderBytes + request->bytes + padding;
  std::memcpy(frame, request->header, kHeaderBytes);
  if (request->bytes > 0) std::memcpy(frame + kHeaderBytes, request->data, request->bytes);
  std::memset(frame + kHeaderBytes + request->bytes, 0, padding);
  iovec whole{frame, frame_bytes};
  Took(seals_ ? SendZero(&whole, 1) : send(lane_fd(0), frame, frame_bytes, MSG_DONTWAIT | MSG_NOSIGNAL), frame_bytes);
}

void SendComm::PostBulk(SendRequest* request) {
  striper_->Post(request);
  if (caller_driven_) {
    if (requests_.in_use() == 1) Drive();
    return;
  }
  idle_.WakeOne();
}

bool SendComm::ReadyToFlush() {
  if (held_ == nullptr) return true;
  if (held_->crowded() || held_->awaited()) held_->Acked(QueuedOf(lane_fd(0), sealer_.get()));
  if (zero_lost_ || !failure().open()) return false;
  const int err = SendAgain(lane_fd(0), held_.get(), sealer_.get(), seals_);
  if (err != 0 && !IsTransientErrno(err)) LaneZeroBroke(err);
  return err == 0;
}

void SendComm::Flush() {
  if (!ReadyToFlush()) return;
  iovec iov[SendQueue::kIovMax];
  while (!queue_.empty() && failure().open()) {
    size_t offered = 0;
    const int count = queue_.Gather(iov, &offered);
    if (offered == 0) return;
    if (!Took(SendZero(iov, count), offered)) return;
  }
}

bool SendComm::Took(ssize_t sent, size_t offered) {
  if (sent >= 0) {
    queue_.Advance(static_cast<size_t>(sent));
    counts_.bytes.Add(static_cast<size_t>(sent));
    counts_.calls.Add();
    if (static_cast<size_t>(sent) == offered) return true;
    counts_.short_calls.Add();
    return false;
  }
  if (errno == EINTR) return true;
  if (errno != EAGAIN && errno != EWOULDBLOCK) LaneZeroBroke(errno);
  return false;
}

void SendComm::Drive() {
  Flush();
  if (!caller_driven_) return;
  // Where lanes come and go, not always the same ones first: the last would be given too little to be judged.
  if (rates_.steered() && ++first_pumped_ >= bulk_.size()) first_pumped_ = 0;
  for (size_t i = 0; i < bulk_.size(); ++i) {
    const size_t at = i + first_pumped_;
    if (auto& lane = bulk_[at < bulk_.size() ? at : at - bulk_.size()]) lane->Pump();
  }
}

void SendComm::MoveAll() {
  if (staging_ != nullptr) MoveStaged();
  Drive();
}

absl::Status SendComm::Test(Request* request, bool* done, int* sizes) {
  *done = false;
  if (!mutex_.try_lock()) return absl::OkStatus();
  MutexLock lock(mutex_, std::adopt_lock);
  SendRequest* slot = static_cast<SendRequest*>(request);
  if (!slot->in_use) return absl::FailedPreconditionError("test: the request was reported done before");
  if (times() != nullptr) times()->Called();
  MoveAll();
  if (!failed()) events().Publish();
  if (slot->done()) {
    *done = true;
    events().End(slot->events);
    if (sizes != nullptr) sizes[0] = static_cast<int>(slot->bytes);
    if (times() != nullptr) KeepTime(*slot);
    Count(slot->bytes);
    requests_.Give(slot);
    return absl::OkStatus();
  }
  if (peer_loss_.known() && !LanesDecide(*slot)) FailIfPeerGone();
  if (!failed()) return absl::OkStatus();
  events().End(slot->events);
  return failure().Refusal();
}

int64_t SendComm::DoneSince(const SendRequest& asked) const {
  int64_t since_ns = asked.last_ns;
  if (requests_.in_use() == 1 || since_ns == 0 || CoarseMonotonicNanos() - since_ns < kWorthALookNs) {
    return requests_.in_use() == 1 ? since_ns : 0;
  }
  for (int i = 0; i < requests_.count(); ++i) {
    const SendRequest& request = requests_.slot(i);
    if (!request.in_use) continue;
    if (!request.done()) return 0;
    since_ns = std::max<int64_t>(since_ns, request.last_ns);
  }
  return since_ns;
}

void SendComm::KeepTime(const SendRequest& request) {
  times()->End({request.begun_ns, 0, DoneSince(request), request.bytes, IsBulk(request.bytes)});
}

void SendComm::PeerGone(absl::Status status, int lane, bool in_order) {
  peer_loss_.Note(std::move(status), lane, in_order);
}

void SendComm::FailIfPeerGone() {
  if (peer_loss_.known()) failure().Fail(peer_loss_.status(), peer_loss_.lane());
}

// A peer that has all closes in order, and the end of its lanes may be known here before a progress thread has heard
// that the kernel took the last bytes, or that it has let go of pages that were sent without a copy. Where lanes heal,
// the last acknowledgement comes with the peer's end.
bool SendComm::LanesDecide(const SendRequest& request) {
  if (held_ != nullptr) {
    const std::vector<uint64_t> taken = healing()->TakenAtEnd();
    return taken.empty() ? AllAcknowledged() : LanesDecide(request, taken);
  }
  const bool bulk = striper_ != nullptr && request.message_bytes > express_bytes_;
  if (!bulk || caller_driven_ || !peer_loss_.in_order() || failed()) return false;
  if (std::exchange(lanes_asked_, true)) return true;
  for (auto& lane : bulk_) {
    if (lane == nullptr) continue;
    lane->PeerClosed();
    ProgressPool::Kick(lane.get());
  }
  return true;
}

// The lanes' own ends come too, but perhaps behind what the network has swallowed.
void SendComm::PeerEnded() {
  Comm::PeerEnded();
  PeerGone(absl::UnavailableError("the peer closed the connection"), kNoLane, false);
}

std::vector<LanePace> SendComm::Paces() const {
  std::vector<LanePace> paces;
  for (size_t i = 0; i < bulk_.size(); ++i) {
    const int lane = static_cast<int>(i);
    const uint64_t sent = bulk_[i] == nullptr ? 0 : bulk_[i]->bytes_sent();
    paces.push_back({rates_.Get(lane), sent, !rates_.steered() || rates_.Carries(lane)});
  }
  return paces;
}

Flight SendComm::FlightNow() const {
  Flight flight;
  for (int i = 0; i < requests_.count(); ++i) {
    const SendRequest& request = requests_.slot(i);
    const uint64_t left = request.left.load(std::memory_order_relaxed);
    if (left == 0) continue;
    const uint64_t sequence = request.sequence;
    if (flight.messages++ > 0 && sequence > flight.sequence) continue;
    flight.sequence = sequence;
    flight.bytes_total = request.bytes;
    flight.bytes_done = flight.bytes_total - std::min(left, flight.bytes_total);
  }
  return flight;
}

bool SendComm::InFlight(const MemoryRegion* region) {
  for (int i = 0; i < requests_.count(); ++i) {
    const SendRequest& request = requests_.slot(i);
    if (!request.in_use || request.done()) continue;
    if (region == nullptr || region->UsedBy(request.region, request.data, request.bytes)) return true;
  }
  return false;
}

void SendComm::Quiesce() {
  idle_.Close();
  for (auto& lane : bulk_) {
    if (lane != nullptr) ProgressPool::Detach(lane.get());
  }
  if (staging_ != nullptr && failed()) staging_->Abandon();
}

void SendComm::StopWatching() { watch_->Stop(); }

void SendComm::TellPeer(const absl::Status&) {
  for (int lane = 0; lane < lane_count(); ++lane) shutdown(lane_fd(lane), SHUT_RDWR);
}

}  // namespace tcpx
