#include "net_socket/rma/group.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"

namespace tcpx {
namespace {

// How long a close waits for what is queued.
constexpr int64_t kDrainNs = 5 * kSecond;
constexpr unsigned kNapUs = 50;
// Whoever closes its windows at the same time as a peer needs no error.
constexpr int64_t kGraceNs = 100 * kMillisecond;

absl::Status Refused(const std::string& text) {
  return absl::FailedPreconditionError(absl::StrCat("one-sided transfer refused: ", text));
}

// Where there is no CUDA driver, what NCCL calls a GPU's memory is the host's.
bool StagesGpuMemory(PluginApi* net, int device) {
  const auto properties = net->GetProperties(device);
  return properties.ok() && (properties->pointer_support & static_cast<int>(MemoryType::kCuda)) != 0;
}

}  // namespace

RmaGroup::RmaGroup(PluginApi* net, RmaListen* listen, absl::Span<void* const> handles, uint32_t rank)
    : net_(net),
      context_(listen->context),
      listen_(std::exchange(listen->listen, nullptr)),
      rank_(rank),
      stages_(StagesGpuMemory(net, listen->device)),
      gone_(handles.size()) {
  RmaRecord hello;
  hello.kind = RmaKind::kHello;
  hello.token = rank;
  hello.bytes = handles.size();
  for (const void* handle : handles) senders_.emplace_back(net, context_, listen->device, handle, hello);
}

RmaGroup::~RmaGroup() = default;

absl::Status RmaGroup::Reach() {
  const uint32_t next = (rank_ + 1) % senders_.size();
  if (next == rank_) return absl::OkStatus();
  for (;; usleep(kNapUs)) {
    MutexLock lock(mutex_);
    senders_[next].Open();
    bool moved = false;
    absl::Status status = Move(&moved);
    if (!status.ok() || (senders_[next].up() && senders_[next].idle())) return status;
  }
}

RmaContexts* RmaGroup::OpenContexts(int count) {
  MutexLock lock(mutex_);
  contexts_.push_back(std::make_unique<RmaContexts>());
  RmaContexts* const contexts = contexts_.back().get();
  contexts->group = this;
  contexts->first = next_context_;
  contexts->count = count;
  next_context_ += static_cast<uint32_t>(count);
  return contexts;
}

void RmaGroup::CloseContexts(RmaContexts* contexts) {
  for (const int64_t until_ns = MonotonicNanos() + kDrainNs;; usleep(kNapUs)) {
    MutexLock lock(mutex_);
    if (contexts->unfinished > 0 && !failed()) {
      bool moved = false;
      (void)Move(&moved);
      if (contexts->unfinished > 0 && !failed() && MonotonicNanos() < until_ns) continue;
    }
    if (contexts->unfinished > 0 && !failed()) {
      Fail(absl::UnavailableError("contexts were destroyed with operations unfinished"), nullptr).IgnoreError();
    }
    if (failed()) {
      for (RmaSender& sender : senders_) sender.Close();
    }
    requests_.Disown(contexts);
    for (auto& [token, get] : gets_) {
      if (get.request != nullptr && get.request->contexts == nullptr) get.request = nullptr;
    }
    for (auto at = contexts_.begin(); at != contexts_.end(); ++at) {
      if (at->get() != contexts) continue;
      contexts_.erase(at);
      break;
    }
    return;
  }
}

RmaHandle RmaGroup::Register(void* data, size_t bytes, MemoryType type, bool window) {
  MutexLock lock(mutex_);
  return regions_.Add(data, bytes, stages_ ? type : MemoryType::kHost, window);
}

void RmaGroup::Deregister(RmaHandle handle) {
  MutexLock lock(mutex_);
  const RmaRegion* const region = regions_.Find(handle);
  if (region == nullptr) return;
  const uint32_t id = region->id;
  for (RmaSender& sender : senders_) sender.Forget(id);
  for (auto& receiver : receivers_) receiver->Forget(id);
  regions_.Remove(handle);
}

absl::Status RmaGroup::Check(const RmaContexts& contexts, int context, const RmaOperation& operation) const {
  if (context < 0 || context >= contexts.count)
    return Refused(absl::StrFormat("context %d of %d", context, contexts.count));
  if (operation.rank >= senders_.size()) {
    return Refused(absl::StrFormat("rank %u of %u", operation.rank, senders_.size()));
  }
  if (gone_[operation.rank]) {
    return absl::UnavailableError(absl::StrCat("rank ", operation.rank, " has closed its group"));
  }
  if (operation.bytes > 0) {
    const RmaRegion* const local = regions_.Find(operation.local);
    if (local == nullptr || !local->Contains(operation.local_offset, operation.bytes)) {
      return Refused("here " + RangeText(operation.bytes, operation.local_offset, operation.local, local));
    }
    const RmaRegion* const remote = regions_.Find(operation.remote);  // Its size there is the peer's to check.
    if (remote == nullptr) return Refused("there " + RangeText(operation.bytes, 0, operation.remote, remote));
  }
  if (operation.has_signal && regions_.Find(operation.signal) == nullptr) {
    return Refused("a signal at " + RangeText(0, 0, operation.signal, nullptr));
  }
  return absl::OkStatus();
}

absl::Status RmaGroup::Post(RmaContexts* contexts, int context, const RmaOperation& operation, RmaRequest** request) {
  calls_.now.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  if (failed()) return status_;
  absl::Status status = Check(*contexts, context, operation);
  if (!status.ok()) return Fail(status, nullptr);
  RmaRequest* const posted = requests_.Take(contexts);
  const uint32_t number = contexts->first + static_cast<uint32_t>(context);
  if (operation.rank == rank_) {
    status = PutHere(operation, posted);
  } else {
    status = operation.get ? Ask(number, operation, posted) : Put(number, operation, posted);
    if (status.ok() && !operation.more_follow) status = senders_[operation.rank].Flush();
  }
  if (!status.ok()) return Fail(status, nullptr);
  *request = posted;
  return absl::OkStatus();
}

bool RmaGroup::Inline(const RmaSender& sender, const RmaRegion& from, uint64_t bytes) const {
  return bytes <= kRmaInlineBytes && !from.on_gpu() && !sender.crowded();
}

absl::Status RmaGroup::Put(uint32_t context, const RmaOperation& operation, RmaRequest* request) {
  RmaSender& sender = senders_[operation.rank];
  RmaRecord record;
  record.context = context;
  record.bytes = operation.bytes;
  const RmaRegion* local = nullptr;
  if (operation.bytes > 0) {
    local = regions_.Find(operation.local);
    record.region = regions_.Find(operation.remote)->id;
    record.offset = operation.remote_offset;
    record.follows = !Inline(sender, *local, operation.bytes);
  }
  if (operation.has_signal) {
    record.has_signal = true;
    record.strong = operation.strong;
    record.signal_region = regions_.Find(operation.signal)->id;
    record.signal_offset = operation.signal_offset;
    record.signal_add = operation.signal_add;
  }
  return sender.Add(record, local == nullptr ? nullptr : local->data + operation.local_offset, local, request);
}

absl::Status RmaGroup::Ask(uint32_t context, const RmaOperation& operation, RmaRequest* request) {
  if (operation.bytes == 0) {
    RmaRequests::Finish(request);
    return absl::OkStatus();
  }
  RmaRecord record;
  record.kind = RmaKind::kGet;
  record.context = context;
  record.region = regions_.Find(operation.remote)->id;
  record.offset = operation.remote_offset;
  record.bytes = operation.bytes;
  record.token = next_token_++;
  const RmaRegion* const local = regions_.Find(operation.local);
  Get& get = gets_[record.token];
  get.rank = operation.rank;
  get.wanted = {local->data + operation.local_offset, *local, false};
  get.bytes = operation.bytes;
  get.request = request;
  return senders_[operation.rank].Add(record, nullptr, nullptr, nullptr);
}

absl::Status RmaGroup::PutHere(const RmaOperation& operation, RmaRequest* request) {
  const RmaRegion* from = regions_.Find(operation.local);
  const RmaRegion* to = regions_.Find(operation.remote);
  uint64_t from_offset = operation.local_offset;
  uint64_t to_offset = operation.remote_offset;
  if (operation.get) {
    std::swap(from, to);
    std::swap(from_offset, to_offset);
  }
  if (operation.bytes > 0) {
    if (!from->Contains(from_offset, operation.bytes)) {
      return Refused("here " + RangeText(operation.bytes, from_offset, operation.remote, from));
    }
    if (!to->Contains(to_offset, operation.bytes)) {
      return Refused("here " + RangeText(operation.bytes, to_offset, operation.remote, to));
    }
    std::memmove(to->data + to_offset, from->data + from_offset, operation.bytes);
  }
  if (operation.has_signal) {
    const RmaRegion* const signals = regions_.Find(operation.signal);
    if (!signals->ContainsWord(operation.signal_offset)) {
      return Refused("a signal of " + RangeText(sizeof(uint64_t), operation.signal_offset, operation.signal, signals));
    }
    auto* const word = reinterpret_cast<uint64_t*>(signals->data + operation.signal_offset);
    __atomic_fetch_add(word, operation.signal_add, __ATOMIC_SEQ_CST);
  }
  RmaRequests::Finish(request);
  return absl::OkStatus();
}

absl::Status RmaGroup::Flush(RmaContexts* contexts, RmaRequest** request) {
  MutexLock lock(mutex_);
  if (failed()) return status_;
  *request = requests_.Take(contexts);
  RmaRequests::Finish(*request);
  return absl::OkStatus();
}

absl::Status RmaGroup::Test(RmaRequest* request, bool* done) {
  calls_.now.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  if (!request->done) {
    bool moved = false;
    absl::Status status = Move(&moved);
    if (!status.ok()) return status;
  }
  if (!request->done) return absl::OkStatus();
  *done = true;
  requests_.Give(request);
  return absl::OkStatus();
}

absl::Status RmaGroup::Progress() {
  calls_.now.fetch_add(1, std::memory_order_relaxed);
  MutexLock lock(mutex_);
  bool moved = false;
  return Move(&moved);
}

bool RmaGroup::Tick() {
  const uint32_t calls = calls_.now.load(std::memory_order_relaxed);
  if (calls != std::exchange(calls_.at_tick, calls) || !mutex_.try_lock()) return false;
  MutexLock lock(mutex_, std::adopt_lock);
  bool moved = false;
  (void)Move(&moved);
  return moved;
}

absl::Status RmaGroup::Accept(bool* moved) {
  auto comm = net_->Accept(listen_);
  if (!comm.ok()) return comm.status();
  if (*comm == nullptr) return absl::OkStatus();
  receivers_.push_back(std::make_unique<RmaReceiver>(net_, *comm, this));
  *moved = true;
  return absl::OkStatus();
}

absl::Status RmaGroup::Move(bool* moved) {
  if (failed()) return status_;
  absl::Status status = CheckPeers();
  if (status.ok()) status = Accept(moved);
  if (!status.ok()) return Fail(status, nullptr);
  for (size_t i = 0; i < receivers_.size(); ++i) {
    status = receivers_[i]->Progress(moved);
    if (!status.ok()) return Fail(status, receivers_[i]->comm());
  }
  for (RmaSender& sender : senders_) {
    status = sender.Progress(moved);
    if (!status.ok()) return Fail(status, sender.comm());
  }
  return absl::OkStatus();
}

absl::Status RmaGroup::Fail(const absl::Status& status, Comm* by) {
  if (failed()) return status_;
  status_ = status;
  failed_.store(true, std::memory_order_release);
  // Any connection tells its peer, and takes the communicator's others with it.
  for (size_t i = 0; by == nullptr && i < receivers_.size(); ++i) by = receivers_[i]->comm();
  for (size_t i = 0; by == nullptr && i < senders_.size(); ++i) by = senders_[i].comm();
  const std::string text = absl::StrFormat("rank %u of %u: %s", rank_, senders_.size(), std::string(status.message()));
  if (by == nullptr) {
    TCPX_WARN("%s", text);
  } else {
    net_->Fail(by, absl::Status(status.code(), text));
  }
  return status_;
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
  return sender.Add(answer, region->data + get.offset, region, nullptr);
}

RmaReceiver::Wanted* RmaGroup::Find(uint32_t rank, const RmaRecord& gotten) TCPX_NO_THREAD_SAFETY_ANALYSIS {
  const auto get = gets_.find(gotten.token);
  if (get == gets_.end() || get->second.rank != rank || get->second.bytes != gotten.bytes) return nullptr;
  return &get->second.wanted;
}

void RmaGroup::Answered(uint64_t token) TCPX_NO_THREAD_SAFETY_ANALYSIS {
  const auto get = gets_.find(token);
  if (get == gets_.end()) return;
  RmaRequests::Finish(get->second.request);
  gets_.erase(get);
}

void RmaGroup::PeerClosed(uint32_t rank) TCPX_NO_THREAD_SAFETY_ANALYSIS {
  gone_[rank] = true;
  if (ended_.at_ns != 0) return;
  ended_.at_ns = MonotonicNanos();
  ended_.rank = rank;
}

absl::Status RmaGroup::CheckPeers() {
  if (ended_.at_ns == 0 || MonotonicNanos() - ended_.at_ns < kGraceNs) return absl::OkStatus();
  if (!regions_.has_windows()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrFormat(
      "rank %u has ended its one-sided transfers, as ncclCommAbort does, and windows are open here", ended_.rank));
}

bool RmaGroup::Quiet() const {
  for (const RmaSender& sender : senders_) {
    if (sender.used() && !sender.idle()) return false;
  }
  return true;
}

void RmaGroup::Close() {
  const int64_t until_ns = MonotonicNanos() + kDrainNs;
  for (bool first = true;; first = false, usleep(kNapUs)) {
    MutexLock lock(mutex_);
    bool moved = false;
    (void)Move(&moved);
    for (size_t rank = 0; first && rank < senders_.size(); ++rank) {
      if (!failed() && !gone_[rank]) senders_[rank].SayBye();
    }
    if (first) (void)Move(&moved);
    if (!failed() && !Quiet() && MonotonicNanos() < until_ns) continue;
    for (RmaSender& sender : senders_) sender.Close();
    for (auto& receiver : receivers_) receiver->Close();
    break;
  }
  net_->CloseListen(listen_);
}

}  // namespace tcpx
