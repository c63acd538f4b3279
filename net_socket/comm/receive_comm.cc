#include "net_socket/comm/receive_comm.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/bits.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/health/lane_liveness.h"
#include "net_socket/health/tuning.h"

namespace tcpx {
namespace {

// Steps of NCCL's buffers (NCCL_STEPS).
constexpr int64_t kSteps = 8;
// A step of its LL protocol, in lines of 16 bytes: 8 lines of each of 512 threads, unless it is set otherwise.
constexpr int64_t kLlStepBytes = 64 << 10;

size_t LlStepBytes(const Options& options) {
  return static_cast<size_t>(std::max(kLlStepBytes, options.ll_buffer_bytes / kSteps));
}

}  // namespace

ReceiveComm::ReceiveComm(ConnectionSetup setup)
    : Comm(std::move(setup), Direction::kReceive),
      requests_(this, kRequestsMax),
      table_(absl::bit_ceil(static_cast<size_t>(requests_.count() * this->setup().max_receives)),
             this->setup().max_receives > 1),
      lanes_(&this->setup(), &failure(), &healing(), &table_) {
  Begin(static_cast<int>(table_.slots()));
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
  if (!table_.HasRoom(args.count) || !lanes_.express().records().HasRoom()) return absl::OkStatus();
  ReceiveRequest* slot = requests_.Take();
  if (slot == nullptr) return absl::OkStatus();
  Post(args, slot);
  setup().activity->Note();
  *request = slot;
  lanes_.express().Announce(slot->receives[0]->sequence, args.tags, args.count);
  lanes_.WakeParked(table_.posted());
  return absl::OkStatus();
}

void ReceiveComm::Post(const ReceiveArgs& args, ReceiveRequest* request) {
  request->count = args.count;
  request->optional = args.optional_completion;
  request->early = false;
  request->bulk = false;
  if (numbers_.times() != nullptr) numbers_.SeeCaller();
  const int64_t now_ns = numbers_.times() == nullptr ? 0 : numbers_.times()->Begin(numbers_.IsBulk(args.bytes[0]));
  for (int i = 0; i < args.count; ++i) {
    if (numbers_.times() != nullptr) table_.NextSlot().Begin(now_ns);
    request->regions[i] = args.regions == nullptr ? nullptr : args.regions[i];
    void* const parent = args.profiler_parents == nullptr ? nullptr : args.profiler_parents[i];
    request->receives[i] =
        table_.Post(static_cast<char*>(args.data[i]), args.bytes[i], args.tags == nullptr ? 0 : args.tags[i],
                    events_.Begin(table_.next_index(), parent), RouteOf(args, i));
    request->receives[i]->unawaited = args.unawaited;
    if (args.bytes[i] > setup().express_bytes) request->bulk = true;
  }
  if (request->bulk) ++bulk_posted_;
}

// NCCL marks receives of LL and LL128 by the hint, unless the user forbade it the hint: then all may be such. It never
// groups them (2.24.3 to 2.30: only point-to-point connections are shared, which know LL and Simple, no LL128, and
// whose LL stays in host memory). Interfaces up to v8 know no hint: there the kernel writes, as in NCCL's own Socket
// transport, and LL128 has to be asked for. Bytes that are opened in place can be read before they are known to be
// authentic. If a kernel may read them meanwhile, they are opened elsewhere. For members of a group no hint says that
// they are LL: there their size decides.
PayloadRoute ReceiveComm::RouteOf(const ReceiveArgs& args, int member) const {
  PayloadRoute way;
  const bool sealed = lanes_.express().records().sealed();
  const bool hinted = setup().runtime->options.nccl_optional_recv && (args.knows_hint || !sealed);
  const bool grouped_ll = sealed && args.count > 1 && args.bytes[member] <= LlStepBytes(setup().runtime->options);
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
  if (!lanes_.caller_driven() && staging_->HasRoom()) lanes_.WakeStarved();
}

absl::Status ReceiveComm::Test(Request* request, bool* done, int* sizes) {
  *done = false;
  if (!mutex_.try_lock()) return absl::OkStatus();
  MutexLock lock(mutex_, std::adopt_lock);
  ReceiveRequest* slot = static_cast<ReceiveRequest*>(request);
  if (!slot->in_use || slot->early) return absl::FailedPreconditionError("test: the request was reported done before");
  bool may_report = MayReport(*slot);
  if (!may_report) {
    if (numbers_.times() != nullptr) numbers_.times()->Called();
    const bool ended = lanes_.AllEnded() && (staging_ == nullptr || staging_->idle());
    lanes_.Drive(*Wanted(*slot), bulk_posted_ > 0);
    if (staging_ != nullptr) MoveStaged();
    if (!failed()) events_.Publish();
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
  for (int i = 0; i < request.count; ++i) events_.Stop(request.receives[i]->events);
}

// The size of a message that has not begun to arrive is 0; NCCL only profiles the sizes of optional receives.
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

// Keeps the time of a receive that has landed, even if it was reported earlier: before that its size is not known. One
// member of a group counts for all.
void ReceiveComm::KeepTime(const ReceiveRequest& request) {
  const PostedReceive& receive = *request.receives[request.count - 1];
  const uint64_t bytes = receive.message_bytes.load(std::memory_order_relaxed);
  const uint64_t known = bytes == kUnknownBytes ? 0 : bytes;
  const bool youngest = request.last_sequence() + 1 == table_.posted();
  numbers_.times()->End(
      {receive.begun_ns, receive.first_ns, youngest ? int64_t{receive.last_ns} : 0, known, numbers_.IsBulk(known)});
}

void ReceiveComm::Release(ReceiveRequest* request) {
  if (numbers_.times() != nullptr) KeepTime(*request);
  if (request->bulk) --bulk_posted_;
  for (int i = 0; i < request->count; ++i) {
    request->receives[i]->in_use = false;
    numbers_.Count(request->receives[i]->message_bytes.load(std::memory_order_relaxed));
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
  for (const ReceiveRequest& request : requests_) {
    if (!request.in_use || request.landed()) continue;
    if (region == nullptr && request.receives[0]->idle()) continue;
    if (region == nullptr) return true;
    for (int member = 0; member < request.count; ++member) {
      const PostedReceive& receive = *request.receives[member];
      if (region->UsedBy(request.regions[member], receive.data, receive.capacity)) return true;
    }
  }
  return false;
}

void ReceiveComm::Quiesce() {
  lanes_.Quiesce();
  if (staging_ != nullptr && failed()) staging_->Abandon();
}

void ReceiveComm::LaneLost(int) {
  if (std::exchange(awaits_, true)) return;
  setup().runtime->reactor.RepeatDeadlineInLoop(tuning::kAskLanesNs, [self = tie_.To(this)] {
    const bool awaits = self.Ask(false, [](ReceiveComm* comm) { return comm->AwaitsLanes(); });
    return awaits ? tuning::kAskLanesNs : Reactor::kOver;
  });
}

// A sender that is there gives up first, and says why.
bool ReceiveComm::AwaitsLanes() {
  const bool over = healing().Overdue();
  if (healing().heals() && healing().lanes().AnyLost() && !failed() && !over) return true;
  awaits_ = false;
  if (!healing().heals() || !over) return false;
  failure().FailFound(absl::UnavailableError(absl::StrFormat(
                          "all lanes were lost and the peer has brought none back within %d s (TCPX_RECONNECT_TIMEOUT)",
                          setup().runtime->options.reconnect_timeout_ns / kSecond)),
                      kNoLane);
  return false;
}

// Credits that nobody acknowledges: only the sender can dial.
bool ReceiveComm::LooksForSilence(int64_t now_ns) {
  if (failed() || !healing().heals()) return false;
  if (failure().LookAtLane(0, now_ns) == Arbiter::Finding::kSuspect &&
      setup().health->socket().SayNow(SilentNotice(setup().connection_id, 0), HealthSocket::Passing::kQuestion)) {
    healing().Judge([now_ns](Arbiter* arbiter) { arbiter->Moved(0, now_ns); });
  }
  return true;
}

}  // namespace tcpx
