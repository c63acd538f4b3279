#include "net_socket/gpu/gpu_pool.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "common/clock.h"
#include "common/log.h"
#include "common/status.h"

namespace tcpx {
namespace {

// From one look at a stream to the next, of a thread that waits for it. A guess.
constexpr unsigned kNapUs = 50;
// The patience with other streams of a GPU that is stuck: far more than the copies of all slots take. A guess.
constexpr int64_t kOthersNs = kSecond;

// A wish only: a container may forbid it. MPOL_PREFERRED is 1 (linux/mempolicy.h).
void PreferNode(void* data, size_t bytes, int node) {
  constexpr int kPreferred = 1;
  constexpr int kNodesMax = 8 * sizeof(unsigned long);
  if (node < 0 || node >= kNodesMax) return;
  const unsigned long mask = 1ul << node;
  (void)syscall(SYS_mbind, data, bytes, kPreferred, &mask, kNodesMax + 1, 0);
}

uint64_t Top(uint64_t before, uint32_t top) { return (((before >> 32) + 1) << 32) | top; }

}  // namespace

bool GpuPatience::Await(std::atomic<bool>* stuck, absl::FunctionRef<bool()> over) {
  const int64_t until_ns = MonotonicNanos() + (stuck_streams_.load() == 0 ? ns_ : std::min(ns_, kOthersNs));
  while (!over()) {
    if (stuck->load()) return false;
    if (MonotonicNanos() < until_ns) {
      usleep(kNapUs);
    } else if (!stuck->exchange(true)) {
      ++stuck_streams_;
    }
  }
  if (stuck->exchange(false)) --stuck_streams_;
  return true;
}

absl::StatusOr<std::unique_ptr<GpuPool>> GpuPool::Open(const GpuDriver* driver, GpuPatience* patience,
                                                       const GpuPlace& place, size_t slot_bytes, size_t count) {
  std::unique_ptr<GpuPool> pool(new GpuPool(driver, patience, place, slot_bytes));
  GpuScope scope(*driver, place.context);
  if (!scope.status().ok()) return scope.status();
  absl::Status status =
      driver->Check(driver->api().stream_create(&pool->stream_, kCuStreamNonBlocking), "cuStreamCreate");
  if (!status.ok()) return status;
  status = driver->Check(driver->api().event_create(&pool->drained_, kCuEventDisableTiming), "cuEventCreate");
  if (!status.ok()) return status;
  MutexLock lock(pool->mutex_);
  auto memory = pool->Pin(slot_bytes * count);
  if (!memory.ok()) return memory.status();
  pool->slots_ = std::vector<GpuSlot>(count);
  for (size_t i = 0; i < count; ++i) {
    status = pool->PrepareSlot(&pool->slots_[i], *memory + i * slot_bytes);
    if (!status.ok()) return status;
    pool->Give(&pool->slots_[i]);
  }
  return pool;
}

// The context may be gone, and the driver too: what fails here, fails. Waits for copies of a connection that was reset
// while nobody could wait. Calls that end things may wait for a GPU that is stuck, and are left out then.
GpuPool::~GpuPool() {
  const GpuApi& api = driver_->api();
  if (stream_ != nullptr && !AwaitCopies()) {
    size_t bytes = 0;
    for (const Pinned& pinned : pinned_) bytes += pinned.bytes;
    TCPX_WARN("GPU %d: %d bytes of pinned memory for %s are not freed: the GPU may still use them", place_.device,
              bytes, place_.direction());
    return;
  }
  GpuScope scope(*driver_, place_.context);
  const bool usable = scope.status().ok();
  const auto destroy = [&](CuEvent event) {
    if (usable && event != nullptr) (void)api.event_destroy(event);
  };
  for (const GpuSlot& slot : slots_) destroy(slot.event);
  for (const auto& slot : extra_) destroy(slot->event);
  destroy(drained_);
  if (usable && stream_ != nullptr) (void)api.stream_destroy(stream_);
  for (const Pinned& pinned : pinned_) Unpin(pinned);
}

absl::StatusOr<char*> GpuPool::Pin(size_t bytes) {
  void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return ErrnoStatus(errno, "mmap of slots for GPU memory");
  PreferNode(data, bytes, place_.numa_node);
  (void)madvise(data, bytes, MADV_DONTFORK);  // A child's copy would be of no use, and pinned pages are copied at once.
  const absl::Status status =
      driver_->Check(driver_->api().host_register(data, bytes, kCuHostRegisterPortable), "cuMemHostRegister");
  if (!status.ok()) {
    (void)munmap(data, bytes);
    return status;
  }
  pinned_.push_back({static_cast<char*>(data), bytes});
  return static_cast<char*>(data);
}

// Where the context is gone this fails, and there is nothing to do about it.
void GpuPool::Unpin(const Pinned& pinned) {
  GpuScope scope(*driver_, place_.context);
  if (scope.status().ok()) (void)driver_->api().host_unregister(pinned.data);
  (void)munmap(pinned.data, pinned.bytes);
}

absl::Status GpuPool::PrepareSlot(GpuSlot* slot, char* data) {
  slot->data = data;
  return driver_->Check(driver_->api().event_create(&slot->event, kCuEventDisableTiming), "cuEventCreate");
}

GpuSlot* GpuPool::Take(GpuAllowance* owner) {
  uint64_t before = free_.load(std::memory_order_acquire);
  for (;;) {
    const uint32_t top = static_cast<uint32_t>(before);
    if (top == 0) return nullptr;
    GpuSlot* const slot = &slots_[top - 1];
    const uint32_t next = slot->next_free.load(std::memory_order_relaxed);
    if (!free_.compare_exchange_weak(before, Top(before, next), std::memory_order_acq_rel)) continue;
    slot->owner.store(owner, std::memory_order_relaxed);
    return slot;
  }
}

void GpuPool::Give(GpuSlot* slot) {
  const uint32_t top = static_cast<uint32_t>(slot - slots_.data()) + 1;
  slot->owner.store(nullptr, std::memory_order_relaxed);
  uint64_t before = free_.load(std::memory_order_relaxed);
  do {
    slot->next_free.store(static_cast<uint32_t>(before), std::memory_order_relaxed);
  } while (!free_.compare_exchange_weak(before, Top(before, top), std::memory_order_acq_rel));
}

absl::Status GpuPool::Record(const GpuSlot& slot) const {
  return driver_->Check(driver_->api().event_record(slot.event, stream_), "cuEventRecord");
}

void GpuPool::GiveAll(GpuAllowance* owner) {
  for (GpuSlot& slot : slots_) {
    if (slot.owner.load(std::memory_order_relaxed) == owner) Give(&slot);
  }
}

void GpuPool::Lose(GpuAllowance* owner) {
  for (GpuSlot& slot : slots_) {
    const void* lent_to = owner;
    (void)slot.owner.compare_exchange_strong(lent_to, this, std::memory_order_relaxed);
  }
}

// Where the context is gone, its copies are, too. An event that others record again comes later, and is as good: the
// stream never has many copies before it. Where it can't be asked, the whole stream is.
bool GpuPool::AwaitCopies() {
  GpuScope scope(*driver_, place_.context);
  if (!scope.status().ok()) return true;
  const GpuApi& api = driver_->api();
  bool recorded = true;
  const auto over = [&] {
    const int result = recorded ? api.event_query(drained_) : kCuNotReady;
    if (result == kCuSuccess) return true;
    return (!recorded || result != kCuNotReady) && api.stream_query(stream_) != kCuNotReady;
  };
  // First, what somebody has waited for in vain.
  if (stuck_.load() && !patience_->Await(&stuck_, over)) return false;
  recorded = api.event_record(drained_, stream_) == kCuSuccess;
  if (patience_->Await(&stuck_, over)) return !keeps_memory_.load();
  TCPX_WARN(
      "GPU %d: copies for %s were not carried out within %.1f s (TCPX_PEER_TIMEOUT): does a kernel keep them back? "
      "They may still use memory that NCCL believes is free",
      place_.device, place_.direction(), patience_->seconds());
  return false;
}

absl::Status GpuPool::PinExtra() {
  GpuScope scope(*driver_, place_.context);
  if (!scope.status().ok()) return scope.status();
  auto memory = Pin(slot_bytes_);
  if (!memory.ok()) return memory.status();
  auto slot = std::make_unique<GpuSlot>();
  const absl::Status status = PrepareSlot(slot.get(), *memory);
  if (!status.ok()) {
    Unpin(pinned_.back());
    pinned_.pop_back();
    return status;
  }
  extra_free_.push_back(slot.get());
  extra_.push_back(std::move(slot));
  return absl::OkStatus();
}

absl::Status GpuPool::ReserveExtra(size_t count) {
  MutexLock lock(mutex_);
  // What is taken beyond the reservations so far is somebody else's.
  const size_t before = std::max(reserved_, extra_.size() - extra_free_.size());
  absl::Status status;
  while (status.ok() && extra_.size() < before + count) status = PinExtra();
  reserved_ += count;
  return status;
}

void GpuPool::ForgoExtra(size_t count) {
  MutexLock lock(mutex_);
  reserved_ -= count;
}

absl::StatusOr<GpuSlot*> GpuPool::TakeExtra() {
  MutexLock lock(mutex_);
  const absl::Status status = extra_free_.empty() ? PinExtra() : absl::OkStatus();
  if (!status.ok()) return status;
  GpuSlot* const slot = extra_free_.back();
  extra_free_.pop_back();
  return slot;
}

void GpuPool::GiveExtra(GpuSlot* slot) {
  MutexLock lock(mutex_);
  extra_free_.push_back(slot);
}

absl::StatusOr<std::unique_ptr<GpuAllowance>> GpuAllowance::Open(GpuPool* pool) {
  auto own = pool->TakeExtra();
  if (!own.ok()) return own.status();
  return std::unique_ptr<GpuAllowance>(new GpuAllowance(pool, *own));
}

GpuAllowance::~GpuAllowance() {
  if (!own_lost_) pool_->GiveExtra(own_);
}

GpuSlot* GpuAllowance::Take() {
  if (shared_.fetch_add(1, std::memory_order_relaxed) < kShared) {
    GpuSlot* const slot = pool_->Take(this);
    if (slot != nullptr) return slot;
  }
  shared_.fetch_sub(1, std::memory_order_relaxed);
  return own_free_.exchange(nullptr, std::memory_order_acq_rel);
}

void GpuAllowance::Give(GpuSlot* slot) {
  if (slot == own_) {
    own_free_.store(own_, std::memory_order_release);
    return;
  }
  pool_->Give(slot);
  shared_.fetch_sub(1, std::memory_order_relaxed);
}

bool GpuAllowance::HasRoom() const {
  if (own_free_.load(std::memory_order_relaxed) != nullptr) return true;
  return shared_.load(std::memory_order_relaxed) < kShared && pool_->HasFree();
}

void GpuAllowance::Reset() {
  pool_->GiveAll(this);
  shared_.store(0, std::memory_order_relaxed);
  if (!own_lost_) own_free_.store(own_, std::memory_order_release);
}

void GpuAllowance::Lose() {
  own_lost_ = own_lost_ || own_free_.load(std::memory_order_acquire) == nullptr;
  pool_->Lose(this);
  Reset();
}

}  // namespace tcpx
