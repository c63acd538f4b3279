#include "net_socket/rma/group.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"

namespace tcpx {
namespace {

// How long a group that ends waits for its peers' byes: one may still be on a lane that is being resumed.
constexpr int64_t kByesNs = 60 * kMillisecond;
// Tests of unfinished requests look at their own peer only, except one in this many.
constexpr uint32_t kTestsPerMove = 16;
// In a pass of NCCL's, so many connections that brought nothing lately are asked: each costs a call of the kernel.
constexpr size_t kIdleAsked = 16;

bool Inline(const RmaSender& sender, const RmaRegion& from, uint64_t bytes) {
  return bytes <= kRmaInlineBytes && !from.on_gpu() && !sender.crowded();
}

}  // namespace

RmaGroup::RmaGroup(PluginApi* net, const RmaLimits& limits, RmaListen* listen, absl::Span<void* const> handles,
                   uint32_t rank)
    : net_(net),
      limits_(limits),
      context_(listen->context),
      listen_(std::exchange(listen->listen, nullptr)),
      rank_(rank),
      gpu_(limits.gpu, listen->device, handles.size() - 1),
      strangers_(handles.size() - 1),
      peers_(handles.size(), limits.peer_timeout_ns) {
  ending_.left_ns = limits.linger_ns;
  if (limits.counts != nullptr) limits.counts->Join(&counts_);
  RmaRecord hello;
  hello.kind = RmaKind::kHello;
  hello.token = rank;
  hello.bytes = handles.size();
  for (const void* handle : handles) senders_.emplace_back(net, context_, listen->device, handle, hello);
}

RmaGroup::~RmaGroup() {
  if (limits_.counts != nullptr) limits_.counts->Leave(&counts_);
}

absl::Status RmaGroup::Reach(const std::atomic<bool>& over) {
  for (;; usleep(kRmaNapUs)) {
    MutexLock lock(mutex_);
    if (over) return Fail(LibraryEnds(), nullptr, ", here");
    const uint32_t next = (rank_ + 1) % static_cast<uint32_t>(senders_.size());
    if (next == rank_) return absl::OkStatus();
    senders_[next].Open();
    bool moved = false;
    absl::Status status = Move(&moved);
    if (!status.ok() || (senders_[next].up() && senders_[next].idle())) return status;
  }
}

RmaContexts* RmaGroup::OpenContexts(int count, int traffic_class) {
  MutexLock lock(mutex_);
  contexts_.all.push_back(std::make_unique<RmaContexts>());
  RmaContexts* const contexts = contexts_.all.back().get();
  contexts->group = this;
  contexts->first = contexts_.next;
  contexts->count = count;
  contexts_.next += static_cast<uint32_t>(count);
  if (traffic_class == kNoTrafficClass) return contexts;
  for (RmaSender& sender : senders_) sender.SetTrafficClass(traffic_class);
  return contexts;
}

void RmaGroup::CloseContexts(RmaContexts* contexts) {
  const int64_t began_ns = MonotonicNanos();
  for (;; usleep(kRmaNapUs)) {
    MutexLock lock(mutex_);
    bool moved = false;
    if (contexts->unfinished > 0) (void)Move(&moved);
    const int64_t waited_ns = MonotonicNanos() - began_ns;
    if (contexts->unfinished > 0 && !failed() && waited_ns < ending_.left_ns) continue;
    ending_.left_ns -= waited_ns;
    ending_.orderly = !regions_.has_windows();
    EndContexts(contexts);
    return;
  }
}

void RmaGroup::EndContexts(RmaContexts* contexts) {
  if (contexts->unfinished > 0 && !failed()) {
    WarnOfWaiting();
    Fail(absl::UnavailableError("contexts were destroyed with operations unfinished"), nullptr).IgnoreError();
  }
  if (failed()) {
    for (RmaSender& sender : senders_) sender.Close();
    for (auto& receiver : receivers_) receiver->Close();
  }
  AwaitGpu();
  requests_.Disown(contexts);
  counts_.SetUnderWay(requests_.taken());
  gets_.Disown();
  const auto is_it = [contexts](const auto& one) { return one.get() == contexts; };
  contexts_.all.erase(std::remove_if(contexts_.all.begin(), contexts_.all.end(), is_it), contexts_.all.end());
}

void RmaGroup::AwaitGpu() {
  const absl::Status stuck = gpu_.Await(mutex_);
  if (!stuck.ok()) Fail(stuck, nullptr, ", here").IgnoreError();
}

absl::StatusOr<RmaHandle> RmaGroup::Register(void* data, size_t bytes, MemoryType type, RmaUse use) {
  MutexLock lock(mutex_);
  const auto kind = gpu_.Prepare(static_cast<char*>(data), bytes, type);
  if (!kind.ok()) return Fail(kind.status(), nullptr, ", here");
  regions_.SetWriter(gpu_.writer());
  return regions_.Add(data, bytes, *kind, use);
}

// A region that is not in the table gets nothing more, while the mutex is given up too.
void RmaGroup::Deregister(RmaHandle handle) {
  MutexLock lock(mutex_);
  const auto region = regions_.Take(handle);
  if (!region.has_value()) return;
  for (RmaSender& sender : senders_) {
    const absl::Status lost = sender.Forget(region->id, failed() ? 0 : limits_.linger_ns);
    if (!lost.ok()) Fail(lost, sender.comm(), ", here").IgnoreError();
  }
  for (auto& receiver : receivers_) receiver->Forget(region->id);
  if (gets_.Uses(region->id)) {
    Fail(absl::UnavailableError("memory was deregistered while a get was under way"), nullptr, ", here").IgnoreError();
  }
  AwaitGpu();
  gpu_.Forget(*region);
}

absl::Status RmaGroup::CheckPlace(const RmaContexts& contexts, int context, uint32_t rank) const {
  std::string wrong;
  if (context < 0 || context >= contexts.count) wrong = absl::StrFormat("context %d of %d", context, contexts.count);
  if (rank >= senders_.size()) wrong = absl::StrFormat("rank %u of %u", rank, senders_.size());
  if (!wrong.empty()) return absl::FailedPreconditionError("one-sided transfer refused: " + wrong);
  if (!peers_.gone(rank)) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("rank ", rank, " has closed its group"));
}

absl::Status RmaGroup::Post(RmaContexts* contexts, int context, const RmaOperation& operation, RmaRequest** request) {
  MutexLock lock(mutex_);
  if (failed()) return status_;
  absl::Status status = CheckPlace(*contexts, context, operation.rank);
  if (status.ok()) status = Start(contexts, context, operation, request);
  return status.ok() || failed() ? status : FailHere(status, operation.rank);
}

absl::Status RmaGroup::Start(RmaContexts* contexts, int context, const RmaOperation& operation, RmaRequest** request) {
  auto checked = CheckOperation(regions_, operation, contexts->first + static_cast<uint32_t>(context));
  if (!checked.ok()) return checked.status();
  RmaRequest* const posted = requests_.Take(contexts, operation.rank, operation.get);
  *request = posted;
  counts_.SetUnderWay(requests_.taken());
  if (operation.rank == rank_ || (operation.get && operation.bytes == 0)) {
    counts_.Count(operation, true);
    return gpu_.Do(*checked, posted);
  }
  RmaSender& sender = senders_[operation.rank];
  RmaRecord& record = checked->record;
  if (operation.get) {
    record.token = gets_.Add({checked->data, *checked->local, false}, operation.bytes, posted);
    sender.Add(record, nullptr, nullptr, nullptr);
  } else {
    record.follows = operation.bytes > 0 && !Inline(sender, *checked->local, operation.bytes);
    sender.Add(record, checked->data, checked->local, posted);
  }
  counts_.Count(operation, !record.follows);
  const absl::Status sent = operation.more_follow ? absl::OkStatus() : sender.Flush();
  return sent.ok() ? sent : Fail(sent, sender.comm());
}

absl::Status RmaGroup::Flush(RmaContexts* contexts, RmaRequest** request) {
  MutexLock lock(mutex_);
  if (failed()) return status_;
  *request = requests_.Take(contexts, rank_, false);
  RmaRequests::Finish(*request);
  return absl::OkStatus();
}

absl::Status RmaGroup::Test(RmaRequest* request, bool* done) {
  MutexLock lock(mutex_);
  if (request->contexts == nullptr) return absl::FailedPreconditionError("test of a request that was reported done");
  const absl::Status status = request->done ? absl::OkStatus() : MoveFor(*request);
  if (!status.ok() || !request->done) return status;
  *done = true;
  requests_.Give(request);
  counts_.SetUnderWay(requests_.taken());
  return absl::OkStatus();
}

// NCCL calls Progress between its tests. A caller that does not still moves all connections, only less often.
absl::Status RmaGroup::MoveFor(const RmaRequest& request) {
  bool moved = false;
  if (failed()) return status_;
  if (request.get || request.rank == rank_ || ++moves_.tests_since >= kTestsPerMove) return Move(&moved, true);
  RmaSender& sender = senders_[request.rank];
  absl::Status status = sender.Progress(&moved);
  return status.ok() ? status : Fail(status, sender.comm());
}

absl::Status RmaGroup::Progress() {
  MutexLock lock(mutex_);
  bool moved = false;
  return Move(&moved, true);
}

bool RmaGroup::Tick(bool* moved) {
  const uint32_t count = moves_.count.load(std::memory_order_relaxed);
  if (count != std::exchange(moves_.at_tick, count) || !mutex_.try_lock()) return false;
  MutexLock lock(mutex_, std::adopt_lock);
  strangers_.LookAtOnce();
  ++moves_.at_tick;  // The next is its own.
  if (!Move(moved).ok() || gpu_.writer() == nullptr) return false;
  return !gpu_.idle() || !Quiet() || absl::c_any_of(receivers_, [](const auto& one) { return one->waits(); });
}

absl::Status RmaGroup::Accept(bool* moved) {
  if (!strangers_.MayCome()) return absl::OkStatus();
  auto comm = net_->Accept(listen_);
  if (!comm.ok() || *comm == nullptr) return comm.status();
  *moved = true;
  strangers_.LookAtOnce();  // There may be more.
  // A rank says at once who it is: the oldest that has not is none.
  if (receivers_.size() >= senders_.size() - 1 + RmaStrangers::kMax) {
    const auto oldest = absl::c_find_if(receivers_, [](const auto& one) { return !one->greeted(); });
    CloseStranger(oldest - receivers_.begin(), absl::UnavailableError("too many others came after it"));
  }
  receivers_.push_back(std::make_unique<RmaReceiver>(net_, *comm, this));
  return absl::OkStatus();
}

void RmaGroup::CloseStranger(std::ptrdiff_t index, const absl::Status& why) {
  receivers_[static_cast<size_t>(index)]->Close();
  receivers_.erase(receivers_.begin() + index);
  strangers_.Closed(rank_, why);
}

absl::Status RmaGroup::Move(bool* moved, bool by_turns) {
  moves_.count.fetch_add(1, std::memory_order_relaxed);
  moves_.tests_since = 0;
  if (failed()) return status_;
  absl::Status status = gpu_.Poll(moved);
  if (!status.ok()) return Fail(status, nullptr, ", here");
  if (!peers_.all_here() && regions_.has_windows()) status = peers_.Check(MonotonicNanos());
  if (status.ok()) status = Accept(moved);
  if (!status.ok()) return Fail(status, nullptr);
  for (RmaSender& sender : senders_) {
    status = sender.Progress(moved);
    if (!status.ok()) return Fail(status, sender.comm());
  }
  // Last: who waits for a signal then sees it at once.
  return MoveReceivers(moved, by_turns);
}

absl::Status RmaGroup::MoveReceivers(bool* moved, bool by_turns) {
  for (size_t i = 0; i < receivers_.size();) {
    RmaReceiver& receiver = *receivers_[i];
    const bool asked = !by_turns || !receiver.idle() || i / kIdleAsked == moves_.idle_turn;
    absl::Status status = asked ? receiver.Progress(moved) : absl::OkStatus();
    if (receiver.IsLost(status, limits_.hello_timeout_ns)) {
      CloseStranger(static_cast<std::ptrdiff_t>(i), status);
      continue;
    }
    if (!status.ok()) return Fail(status, receiver.comm());
    RmaSender& answers = senders_[receiver.rank()];  // to its gets
    if (receiver.greeted() && answers.owes()) status = answers.Progress(moved);
    if (!status.ok()) return Fail(status, answers.comm());
    ++i;
  }
  if (++moves_.idle_turn * kIdleAsked >= receivers_.size()) moves_.idle_turn = 0;
  return absl::OkStatus();
}

absl::Status RmaGroup::Fail(const absl::Status& status, Comm* by, const char* where) {
  if (failed()) return status_;
  status_ = status;
  failed_.store(true, std::memory_order_release);
  for (size_t i = 0; by == nullptr && i < receivers_.size(); ++i) {
    if (receivers_[i]->greeted()) by = receivers_[i]->comm();
  }
  for (size_t i = 0; by == nullptr && i < senders_.size(); ++i) by = senders_[i].comm();
  const std::string text =
      absl::StrFormat("rank %u of %u%s: %s", rank_, senders_.size(), where, std::string(status.message()));
  if (by == nullptr) TCPX_WARN("%s", text);
  if (by != nullptr) TellPeers(absl::Status(status.code(), text), by);
  return status_;
}

// Any connection tells its peer, and takes the communicator's others with it, where TCPX_SPREAD_ERRORS lets it.
void RmaGroup::TellPeers(const absl::Status& told, Comm* by) {
  // A connection that failed before may not have spread its error.
  const bool spreads = limits_.spread_errors && !net_->HasFailed(by);
  net_->Fail(by, told);
  if (spreads) return;
  for (auto& receiver : receivers_) {
    if (receiver->comm() != nullptr && receiver->comm() != by) net_->Fail(receiver->comm(), told);
  }
  for (RmaSender& sender : senders_) {
    if (sender.up() && sender.comm() != by) net_->Fail(sender.comm(), told);
  }
}

absl::Status RmaGroup::FailHere(const absl::Status& status, uint32_t rank) {
  counts_.CountRefused();
  Comm* by = rank < senders_.size() ? senders_[rank].comm() : nullptr;
  for (size_t i = 0; by == nullptr && i < receivers_.size(); ++i) {
    if (receivers_[i]->greeted() && receivers_[i]->rank() == rank) by = receivers_[i]->comm();
  }
  return Fail(status, by, ", here");
}

absl::Status RmaGroup::Greeted(RmaReceiver* by, const RmaRecord& hello) TCPX_NO_THREAD_SAFETY_ANALYSIS {
  if (hello.token >= senders_.size() || hello.bytes != senders_.size() || hello.token == rank_) {
    return absl::UnavailableError("one-sided transfer refused: the peer is of another group");
  }
  for (const auto& other : receivers_) {
    if (other.get() == by || !other->greeted() || other->rank() != hello.token) continue;
    return absl::UnavailableError(
        absl::StrCat("one-sided transfer refused: a second peer says that it is rank ", hello.token));
  }
  net_->Adopt(by->comm());
  strangers_.Greeted();
  return absl::OkStatus();
}

absl::Status RmaGroup::Asked(uint32_t rank, const RmaRecord& get) TCPX_NO_THREAD_SAFETY_ANALYSIS {
  const RmaRegion* const region = regions_.FindId(get.region);
  if (region == nullptr || !region->Contains(get.offset, get.bytes)) {
    return absl::UnavailableError(absl::StrCat("one-sided transfer refused: a get of ",
                                               RangeText(get.bytes, get.offset, RmaHandle{get.region} + 1, region)));
  }
  RmaSender& sender = senders_[rank];
  if (sender.overrun()) return absl::UnavailableError("one-sided transfer refused: more gets than NCCL has under way");
  RmaRecord answer;
  answer.kind = RmaKind::kGotten;
  answer.context = get.context;
  answer.bytes = get.bytes;
  answer.token = get.token;
  answer.follows = get.bytes > 0 && !Inline(sender, *region, get.bytes);
  sender.Add(answer, region->data + get.offset, region, nullptr);
  return absl::OkStatus();
}

void RmaGroup::PeerClosed(uint32_t rank, bool orderly) TCPX_NO_THREAD_SAFETY_ANALYSIS {
  peers_.Closed(rank, orderly, MonotonicNanos());
  senders_[rank].PeerClosed();
}

bool RmaGroup::Quiet() const {
  return absl::c_all_of(senders_, [](const auto& one) { return !one.used() || one.idle(); });
}

void RmaGroup::WarnOfWaiting() const {
  size_t waiting = 0;
  for (const RmaSender& sender : senders_) waiting += sender.waiting();
  if (waiting == 0) return;
  TCPX_WARN("rank %u of %u: %u one-sided operations were not sent within TCPX_LINGER (%.1f s)", rank_, senders_.size(),
            waiting, static_cast<double>(limits_.linger_ns) * 1e-9);
}

void RmaGroup::Close() {
  const int64_t began_ns = MonotonicNanos();
  for (bool first = true;; first = false, usleep(kRmaNapUs)) {
    MutexLock lock(mutex_);
    bool moved = false;
    (void)Move(&moved);
    const bool orderly = ending_.orderly && !regions_.has_windows();
    for (RmaSender& sender : senders_) sender.SayBye(orderly);  // Those that still dialled may be up now.
    if (first) (void)Move(&moved);
    const int64_t waited_ns = MonotonicNanos() - began_ns;
    const bool awaits =
        waited_ns < kByesNs && absl::c_any_of(receivers_, [](const auto& one) { return one->owes_bye(); });
    if (!failed() && (awaits || !Quiet())) {
      if (waited_ns < ending_.left_ns) continue;
      WarnOfWaiting();
    }
    for (RmaSender& sender : senders_) sender.Close();
    for (auto& receiver : receivers_) receiver->Close();
    AwaitGpu();
    for (const auto& [handle, region] : regions_.all()) gpu_.Forget(region);
    counts_.Log(rank_, senders_.size());
    break;
  }
  net_->CloseListen(listen_);
}

}  // namespace tcpx
