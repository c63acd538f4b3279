#include "net_socket/comm/send_comm.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/bits.h"
#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/comm/tuning.h"

namespace tcpx {

SendComm::SendComm(ConnectionSetup setup)
    : Comm(std::move(setup), Direction::kSend),
      requests_(this, kRequestsMax * this->setup().max_receives),
      watch_(std::make_unique<PeerWatch>(static_cast<PeerWatch::Owner*>(this), &this->setup().runtime->reactor,
                                         this->setup().lane_count(), this->setup().max_receives)),
      lanes_(&this->setup(), &failure(), PostedMax(), LaneSteering::RatesFor(healing(), tie_.To(&steering_))),
      healer_(Parts()),
      steering_(Parts()) {
  for (int lane = 0; lane < this->setup().lane_count(); ++lane) {
    const int fd = this->setup().lane_fd(lane);
    if (fd >= 0) watch_->WatchInLoop(lane, fd, std::move(this->setup().seals(lane).opener));
  }
  Begin(requests_.count());
  if (this->setup().redialler != nullptr) this->setup().redialler->StartInLoop(tie_.To(&healer_), taker());
}

SenderParts SendComm::Parts() {
  return {&setup(), &tie_, &failure(), &lanes_, &sockets_, this, watch_.get(), &peer_loss_};
}

size_t SendComm::PostedMax() const {
  const int slots = setup().runtime->gpu != nullptr ? GpuAllowance::kSlots : 0;
  return absl::bit_ceil(static_cast<size_t>(requests_.count() + slots));
}

SendComm::~SendComm() {
  // Freed in the reactor, after the functions that unwatch its descriptors.
  setup().runtime->reactor.Post([watch = std::shared_ptr<PeerWatch>(std::move(watch_))] {});
}

absl::Status SendComm::Send(const SendArgs& args, Request** request) {
  *request = nullptr;
  if (!mutex_.try_lock()) return absl::OkStatus();
  MutexLock lock(mutex_, std::adopt_lock);
  if (args.peer_gone != nullptr) peer_loss_.Part();
  if (args.peer_gone != nullptr && peer_loss_.known()) {
    *args.peer_gone = true;
    return absl::OkStatus();
  }
  FailIfPeerGone();
  if (!failure().open()) return failure().Refusal();
  if (args.bytes > kMessageBytesMax) return absl::InvalidArgumentError("isend: a message is at most 1 TiB long");
  SendRequest* slot = Prepare(args);
  if (slot == nullptr) {
    MoveAll();  // A caller that repeats isend without test waits for the peer, which may wait for earlier messages.
    return absl::OkStatus();
  }
  *request = slot;
  setup().activity->Note();
  if (staging_ == nullptr) {
    PostToLanes(slot, args.next_bytes);
  } else {
    PostStaged(slot, args.region != nullptr && args.region->gpu != nullptr);
  }
  if (numbers_.times() != nullptr && slot->done()) slot->last_ns = numbers_.times()->latest_ns();
  return absl::OkStatus();
}

void SendComm::PostToLanes(SendRequest* request, size_t next_bytes) {
  if (!lanes_.IsBulk(*request) && request->message_offset == 0) {
    events_.CountWhole(request->events, 0, request->message_bytes);
  }
  lanes_.Post(request, requests_.in_use() == 1 && (next_bytes == 0 || numbers_.IsBulk(next_bytes)));
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
  const bool grouped = setup().max_receives > 1;
  if (grouped && !watch_->TakeCredit(args.tag, &sequence)) {
    requests_.Give(slot);
    if (numbers_.times() != nullptr) numbers_.times()->Refused();
    return nullptr;
  }
  slot->sequence = grouped ? sequence : next_sequence_++;
  slot->data = static_cast<const char*>(args.data);
  slot->bytes = args.bytes;
  slot->message_bytes = args.bytes;
  slot->tag = args.tag;
  slot->region = args.region;
  slot->events = events_.Begin(requests_.index(slot), args.profiler_parent);
  slot->left.store(Units(args.bytes), std::memory_order_release);  // Who sees it sees parting(), too.
  if (numbers_.times() != nullptr) {
    numbers_.SeeCaller();
    slot->begun_ns = numbers_.times()->Begin(numbers_.IsBulk(args.bytes));
    slot->last_ns = 0;
  }
  return slot;
}

void SendComm::MoveAll() {
  if (staging_ != nullptr) MoveStaged();
  lanes_.Drive();
}

absl::Status SendComm::Test(Request* request, bool* done, int* sizes) {
  *done = false;
  if (!mutex_.try_lock()) return absl::OkStatus();
  MutexLock lock(mutex_, std::adopt_lock);
  SendRequest* slot = static_cast<SendRequest*>(request);
  if (!slot->in_use) return absl::FailedPreconditionError("test: the request was reported done before");
  if (numbers_.times() != nullptr) numbers_.times()->Called();
  MoveAll();
  if (!failed()) events_.Publish();
  if (slot->done()) {
    *done = true;
    events_.Stop(slot->events);
    if (sizes != nullptr) sizes[0] = static_cast<int>(slot->bytes);
    if (numbers_.times() != nullptr) {
      numbers_.times()->End({slot->begun_ns, 0, DoneSince(*slot), slot->bytes, numbers_.IsBulk(slot->bytes)});
    }
    numbers_.Count(slot->bytes);
    requests_.Give(slot);
    return absl::OkStatus();
  }
  if (peer_loss_.known() && !LanesDecide(*slot)) FailIfPeerGone();
  if (!failed()) return absl::OkStatus();
  events_.Stop(slot->events);
  return failure().Refusal();
}

int64_t SendComm::DoneSince(const SendRequest& asked) const {
  // A request that was done for less before it was tested has not waited for its test.
  constexpr int64_t kWorthALookNs = 10 * kMillisecond;
  int64_t since_ns = asked.last_ns;
  if (requests_.in_use() == 1 || since_ns == 0 || CoarseMonotonicNanos() - since_ns < kWorthALookNs) {
    return requests_.in_use() == 1 ? since_ns : 0;
  }
  for (const SendRequest& request : requests_) {
    if (!request.in_use) continue;
    if (!request.done()) return 0;
    since_ns = std::max<int64_t>(since_ns, request.last_ns);
  }
  return since_ns;
}

void SendComm::PeerGone(absl::Status status, int lane, bool in_order) {
  peer_loss_.Note(std::move(status), lane, in_order);
}

bool SendComm::LaneBroke(const absl::Status& status, int lane, bool in_order) {
  if (in_order) healing().Judge([lane](Arbiter* arbiter) { arbiter->Ended(lane); });
  return failure().LoseLane(status, lane);
}

void SendComm::FailIfPeerGone() {
  if (!peer_loss_.known()) return;
  failure().Fail(peer_loss_.status(), peer_loss_.lane(), peer_loss_.parting() ? Noise::kParting : Noise::kWarn);
}

// A peer that has all closes in order, and the end of its lanes may be known here before a progress thread has heard
// that the kernel took the last bytes, or that it has let go of pages that were sent without a copy. Where lanes heal,
// the last acknowledgement comes with the peer's end.
bool SendComm::LanesDecide(const SendRequest& request) {
  const bool by_threads = lanes_.IsBulk(request) && !lanes_.caller_driven();
  if (!setup().heals) {
    if (!by_threads || !peer_loss_.in_order() || failed()) return false;
    lanes_.PeerClosed({});
    return true;
  }
  const std::vector<uint64_t> taken = healing().lanes().TakenAtEnd();
  if (taken.empty()) return AllAcknowledged();
  if (failed()) return false;
  lanes_.PeerClosed(taken);
  return request.done() || by_threads || AllAcknowledged();
}

// Whose socket has died, or dies now, has no acknowledgement to come.
bool SendComm::AllAcknowledged() {
  for (int lane = 0; lane < setup().lane_count(); ++lane) {
    const LaneState state = healing().lanes().state(lane);
    if (state == LaneState::kLost || (IsUp(state) && QueuedBytes(setup().lane_fd(lane)) != 0)) return false;
  }
  return true;
}

void SendComm::LaneResumed(int lane, Seals* seals) {
  watch_->WatchInLoop(lane, setup().lane_fd(lane), seals == nullptr ? nullptr : std::move(seals->opener));
  steering_.ResumedInLoop(lane);
  if (lane > 0) return;
  setup().runtime->reactor.RepeatInLoop(
      tuning::kSendAgainNs, [self = tie_.To(this), after_ns = tuning::kSendAgainNs]() mutable {
        after_ns = std::min(2 * after_ns, tuning::kSendAgainMaxNs);
        return self.Ask(false, [](SendComm* comm) { return comm->SendsAgain(); }) ? after_ns : Reactor::kOver;
      });
}

// A link is held.
bool SendComm::SendsAgain() {
  if (!mutex_.try_lock()) return true;
  MutexLock lock(mutex_, std::adopt_lock);
  bool more = false;
  const absl::Status sealed = failed() ? absl::OkStatus() : lanes_.express().SendAgainUnasked(&more);
  if (!sealed.ok()) failure().FailFound(sealed, 0);
  if (!more) setup().activity->Note();  // It may hold now what no look has seen.
  return more;
}

// The lanes' own ends come too, but perhaps after what the network has swallowed.
void SendComm::PeerLeft() { PeerGone(absl::UnavailableError("the peer closed the connection"), kNoLane, false); }

Flight SendComm::FlightNow() const {
  Flight flight;
  for (const SendRequest& request : requests_) {
    const uint64_t left = request.left.load(std::memory_order_acquire);
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
  for (const SendRequest& request : requests_) {
    if (!request.in_use || request.done()) continue;
    if (region == nullptr || region->UsedBy(request.region, request.data, request.bytes)) return true;
  }
  return false;
}

void SendComm::Quiesce() {
  lanes_.Quiesce();
  if (staging_ != nullptr && failed()) staging_->Abandon();
}

}  // namespace tcpx
