#include "profiler/recorder.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/address.h"

namespace tcpx {
namespace {

// A descriptor number is another socket now, at the latest after this.
constexpr int64_t kLaneKnownNs = kSecond;

std::string Text(const absl::StatusOr<SocketAddress>& address) { return address.ok() ? address->ToString() : "?"; }

constexpr int kIndexBits = 20;
constexpr int kSeenCommunicatorAt = 32;

uint32_t IndexOf(void* handle) {
  return static_cast<uint32_t>(reinterpret_cast<uint64_t>(handle) & ((1u << kIndexBits) - 1));
}

// Above those of all recorders that are gone.
std::atomic<uint64_t> g_next_generation{1};

// Their children begin after their end.
bool Lasts(uint32_t type) { return (type & (ncclProfileGroup | ncclProfileColl | ncclProfileP2p)) != 0; }

// What finds its row in the end, because only then it is known when it was: an operation waits in a queue at first.
bool PlacedInTheEnd(uint32_t type) { return Lasts(type) || type == ncclProfileProxyOp; }

}  // namespace

const TracedLanes::Lane& TracedLanes::Of(int fd, int64_t now_ns) {
  if (lanes_.size() >= kLanesMax && !lanes_.contains(fd)) fd = -1;
  Lane& lane = lanes_[fd];
  if (lane.looked_ns != 0 && now_ns - lane.looked_ns < kLaneKnownNs) return lane;
  lane.looked_ns = now_ns;
  std::string addresses = fd < 0 ? "unknown" : absl::StrCat(Text(LocalAddress(fd)), " - ", Text(PeerAddress(fd)));
  if (addresses != lane.addresses) {
    lane.number = ++seen_;
    lane.addresses = std::move(addresses);
  }
  return lane;
}

Recorder::Recorder(const Settings& settings)
    : sample_(settings.sample),
      first_generation_(g_next_generation.load()),
      writer_(settings.path, settings.bytes_max, settings.process, this) {}

Recorder::~Recorder() {
  writer_.End();
  uint64_t next = g_next_generation.load();
  for (const Entry& entry : slots_) next = std::max(next, entry.generation + 1);
  g_next_generation.store(next);
}

uint32_t Recorder::AddCommunicator(const std::string& name) {
  MutexLock lock(mutex_);
  size_t i = 0;
  while (i < communicators_.size() && communicators_[i].state != Communicator::State::kGone) ++i;
  if (i == communicators_.size()) communicators_.emplace_back();
  communicators_[i] = Communicator{name};
  return static_cast<uint32_t>(i);
}

void Recorder::EndCommunicator(uint32_t communicator) {
  MutexLock lock(mutex_);
  communicators_[communicator].state = Communicator::State::kEnded;
  if (!records()) ForgetEnded();
}

std::vector<uint32_t> Recorder::ForgetEnded() {
  std::vector<uint32_t> rows;
  for (uint32_t i = 0; i < communicators_.size(); ++i) {
    Communicator& communicator = communicators_[i];
    if (communicator.state != Communicator::State::kEnded || communicator.under_way != 0) continue;
    communicator.state = Communicator::State::kGone;
    absl::erase_if(seen_, [i](const auto& seen) { return seen.first >> kSeenCommunicatorAt == i; });
    const std::vector<uint32_t> its = tracks_.Forget(i);
    rows.insert(rows.end(), its.begin(), its.end());
  }
  return rows;
}

Recorder::Entry* Recorder::Find(void* handle) {
  const uint32_t index = IndexOf(handle);
  if (handle == nullptr || index >= slots_.size()) return nullptr;
  Entry& entry = slots_[index];
  return entry.generation == reinterpret_cast<uint64_t>(handle) >> kIndexBits ? &entry : nullptr;
}

bool Recorder::HasRoom() {
  if (recorded_ < kSlotsMax) return true;
  FinishLingering(INT64_MAX);
  dropped_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

uint32_t Recorder::TakeSlot() {
  if (slots_.size() < kSlotsMin || (free_.empty() && slots_.size() < kAllSlotsMax)) {
    slots_.emplace_back();
    slots_.back().generation = first_generation_;
    return static_cast<uint32_t>(slots_.size() - 1);
  }
  if (free_.empty()) return kNone;
  const uint32_t index = free_.front();
  free_.pop_front();
  ++slots_[index].generation;
  return index;
}

// What belongs to a collective and has no parent belongs to one that was left out: NCCL has no handle of that.
bool Recorder::Sampled(uint32_t communicator, uint32_t type) {
  constexpr uint32_t kParts = ncclProfileProxyOp | ncclProfileProxyStep | ncclProfileKernelCh | ncclProfileNetPlugin |
                              ncclProfileCeSync | ncclProfileCeBatch;
  if (sample_ > 1 && (type & kParts) != 0) return false;
  const uint64_t key = static_cast<uint64_t>(communicator) << kSeenCommunicatorAt | type;
  return seen_[key]++ % sample_ == 0;
}

uint32_t Recorder::TakeTrack(const Entry& entry) {
  const EventFacts& facts = entry.event.facts;
  const Entry* const parent = Find(facts.parent);
  const EventFacts* const of = parent != nullptr ? &parent->event.facts : nullptr;
  const bool net = facts.type == ncclProfileNetPlugin;
  const TracedLanes::Lane* const lane = net ? &lanes_.Of(facts.fd, entry.event.begin_ns) : nullptr;
  const uint64_t key = TrackKey(facts, of, entry.communicator, net ? lane->number : 0);
  const auto name = [&]() TCPX_NO_THREAD_SAFETY_ANALYSIS {
    return TrackName(facts, of, communicators_[entry.communicator].name, net ? lane->addresses : "");
  };
  return PlacedInTheEnd(facts.type) ? tracks_.Place(key, entry.event.begin_ns, entry.event.end_ns, name)
                                    : tracks_.Take(key, name);
}

void* Recorder::Start(uint32_t communicator, const EventFacts& facts, int64_t now_ns, bool wanted, bool chained) {
  MutexLock lock(mutex_);
  const Entry* const parent = Find(facts.parent);
  const bool sampled = parent != nullptr ? parent->sampled : Sampled(communicator, facts.type);
  const bool recorded = wanted && sampled && HasRoom();
  if (!recorded && !chained) return nullptr;
  const uint32_t index = TakeSlot();
  if (index == kNone) {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  Entry& entry = slots_[index];
  entry = {Event(), entry.generation, nullptr, communicator, Slot::kOpen, sampled, recorded};
  entry.event.facts = facts;
  entry.event.begin_ns = entry.event.end_ns = now_ns;
  if (recorded) {
    ++recorded_;
    ++communicators_[communicator].under_way;
    if (!PlacedInTheEnd(facts.type)) entry.event.track = TakeTrack(entry);
    ChildStarts(&entry);
  }
  return reinterpret_cast<void*>(entry.generation << kIndexBits | index);
}

void Recorder::ChildStarts(Entry* entry) {
  const uint32_t type = entry->event.facts.type;
  // From v5 on a collective's parent is the application's call, which ends by itself.
  void* const above = entry->event.facts.group != nullptr ? entry->event.facts.group : entry->event.facts.parent;
  Entry* const parent = type == ncclProfileNetPlugin || type == ncclProfileProxyStep ? nullptr : Find(above);
  // One that is another profiler's only waits for nobody.
  if (parent == nullptr || !parent->recorded || !Lasts(parent->event.facts.type)) return;
  if (parent->state != Slot::kOpen && parent->state != Slot::kLingering) return;
  entry->parent = IndexOf(above);
  ++parent->children;
}

void Recorder::ChildStops(uint32_t parent, int64_t now_ns) {
  if (parent == kNone) return;
  Entry& entry = slots_[parent];
  --entry.children;
  entry.event.end_ns = std::max(entry.event.end_ns, now_ns);
}

void Recorder::Note(void* handle, int state, const ncclProfilerEventStateArgs_v5_t* args, int64_t now_ns) {
  MutexLock lock(mutex_);
  Entry* const entry = Find(handle);
  if (entry == nullptr || entry->state != Slot::kOpen) return;
  Event& event = entry->event;
  if (state == ncclProfilerProxyOpInProgress_v4 && event.queued_ns == 0) {
    event.queued_ns = std::max<int64_t>(0, now_ns - event.begin_ns);
    event.begin_ns += event.queued_ns;
  }
  if (state == ncclProfilerKernelChStop && args != nullptr) event.gpu_time_end = args->kernelCh.pTimer;
  if (event.facts.type == ncclProfileProxyStep && args != nullptr && args->proxyStep.transSize != 0) {
    event.transferred = args->proxyStep.transSize;
  }
  if (event.states < Event::kStatesMax) event.state[event.states++] = {now_ns, state};
}

void Recorder::Stop(void* handle, int64_t now_ns) {
  MutexLock lock(mutex_);
  Entry* const entry = Find(handle);
  if (entry == nullptr || entry->state != Slot::kOpen) return;
  entry->event.end_ns = std::max(entry->event.end_ns, now_ns);
  if (entry->recorded && Lasts(entry->event.facts.type)) {
    entry->state = Slot::kLingering;
    lingering_.push_back(IndexOf(handle));
  } else {
    Finish(IndexOf(handle));
  }
}

void Recorder::Finish(uint32_t index) {
  Entry& entry = slots_[index];
  if (entry.recorded) {
    if (PlacedInTheEnd(entry.event.facts.type)) {
      entry.event.track = TakeTrack(entry);
    } else {
      tracks_.Release(entry.event.track);
    }
    ChildStops(entry.parent, entry.event.end_ns);
    --communicators_[entry.communicator].under_way;
    entry.state = Slot::kDone;
    done_.push_back(index);
  } else {
    entry.state = Slot::kFree;
    free_.push_back(index);
  }
}

// Groups start after their collectives, but stop before or after them: once more for those that now may.
void Recorder::FinishLingering(int64_t now_ns) {
  for (bool any = true; any;) {
    any = false;
    for (size_t left = lingering_.size(); left > 0; --left) {
      const uint32_t index = lingering_.front();
      lingering_.pop_front();
      const Entry& entry = slots_[index];
      if (entry.children == 0 && now_ns - entry.event.end_ns >= kLingerNs) {
        Finish(index);
        any = true;
      } else {
        lingering_.push_back(index);
      }
    }
  }
}

void Recorder::SetChained(void* handle, void* chained) {
  MutexLock lock(mutex_);
  if (Entry* const entry = Find(handle)) entry->chained = chained;
}

void* Recorder::Chained(void* handle) {
  MutexLock lock(mutex_);
  const Entry* const entry = Find(handle);
  return entry != nullptr ? entry->chained : nullptr;
}

TraceBatch Recorder::TakeBatch(int64_t now_ns) {
  MutexLock lock(mutex_);
  FinishLingering(now_ns);
  TraceBatch batch;
  batch.tracks = tracks_.TakeNew();
  writing_.swap(done_);
  for (const uint32_t index : writing_) batch.events.push_back(&slots_[index].event);
  batch.gone = ForgetEnded();
  return batch;
}

void Recorder::BatchWritten() {
  MutexLock lock(mutex_);
  recorded_ -= static_cast<uint32_t>(writing_.size());
  for (const uint32_t index : writing_) {
    slots_[index].state = Slot::kFree;
    free_.push_back(index);
  }
  writing_.clear();
}

}  // namespace tcpx
