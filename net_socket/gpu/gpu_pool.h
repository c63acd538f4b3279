// gpu_pool.h: pinned host slots through which GPU memory is staged, in one direction.
//
// Purpose: the slots of one GPU and one direction, shared by all connections: pinned once, on the network card's NUMA
//          node, bounded. Each connection has one slot of its own in addition (GpuAllowance), so that slots which wait
//          for one peer can't keep another connection from moving.
// Threads: Take, Give and HasRoom: any, without a lock. All else at set-up and closing, under the pool's mutex.
// Lifetime: a pool outlives the allowances; an allowance, the slots that it lends. What a GPU that is stuck may still
//          read or write is lost: it is lent to nobody again, and never freed.
// Units:   bytes.
// Errors:  kAborted with the driver's text, kResourceExhausted where the kernel gives no memory.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/message/request.h"

namespace tcpx {

class GpuAllowance;

// How long deregMr and closing wait for copies of a GPU: TCPX_PEER_TIMEOUT, `ns`.
// Purpose: a kernel may keep a GPU from copying for ever, and NCCL may close just because of that. The first wait in
//          vain takes the whole patience. While what it waited for is still under way, waits for the same stream only
//          look, and waits for others are short: a close that waits for several streams takes about one patience.
// Threads: any. Lifetime: the hub's, which outlives the streams.
class GpuPatience {
 public:
  explicit GpuPatience(int64_t ns) : ns_(ns) {}

  // Asks `over` until it says true. False: it has not within the patience. *stuck is the stream's: a wait for it was in
  // vain, and it was not over since.
  bool Await(std::atomic<bool>* stuck, absl::FunctionRef<bool()> over);
  double seconds() const { return static_cast<double>(ns_) * 1e-9; }

 private:
  const int64_t ns_;
  std::atomic<int> stuck_streams_{0};
};

struct GpuSlot : PayloadPlace {
  CuEvent event = nullptr;             // of the copy into or out of the slot
  SendRequest part;                    // sending: what the lanes are given
  SendRequest* message = nullptr;      // sending: whose part it is
  GpuSlot* next_filled = nullptr;      // receiving
  std::atomic<const void*> owner{};    // null: free, or an allowance's own; the pool: lost
  std::atomic<uint32_t> next_free{0};  // index + 1 in the pool's list
};

// Which memory, and the stream of its copies.
struct GpuPlace {
  CuContext context = nullptr;
  int device = 0;
  int numa_node = -1;  // -1: any
  bool sending = false;

  const char* direction() const { return sending ? "sending" : "receiving"; }
  bool operator==(const GpuPlace& other) const {
    return context == other.context && device == other.device && numa_node == other.numa_node &&
           sending == other.sending;
  }
};

class GpuPool {
 public:
  // Pins `count` slots of `slot_bytes`, a multiple of the page size.
  static absl::StatusOr<std::unique_ptr<GpuPool>> Open(const GpuDriver* driver, GpuPatience* patience,
                                                       const GpuPlace& place, size_t slot_bytes, size_t count);
  ~GpuPool();

  const GpuDriver& driver() const { return *driver_; }
  GpuPatience& patience() const { return *patience_; }
  const GpuPlace& place() const { return place_; }
  CuStream stream() const { return stream_; }
  size_t slot_bytes() const { return slot_bytes_; }
  bool HasFree() const { return static_cast<uint32_t>(free_.load(std::memory_order_acquire)) != 0; }
  // Null: all are in use.
  GpuSlot* Take(GpuAllowance* owner);
  void Give(GpuSlot* slot);
  // The slot's event comes after the copies that the stream was given.
  absl::Status Record(const GpuSlot& slot) const;
  // All that `owner` has taken, once nothing of them is in use.
  void GiveAll(GpuAllowance* owner);
  // All that `owner` has taken: the GPU may still use it.
  void Lose(GpuAllowance* owner);

  // Returns once no copy of this pool that was started before is under way. Waits: for deregMr and closing only. False:
  // the GPU has not carried them out within the patience, and may still.
  bool AwaitCopies();

  // Takes one more slot, and gives it back. Pins memory where none was handed back before.
  absl::StatusOr<GpuSlot*> TakeExtra();
  void GiveExtra(GpuSlot* slot);
  // Instead of GiveExtra: the GPU may still use it, and the pool's memory outlives the pool.
  void LoseExtra() { keeps_memory_.store(true); }
  // `count` more of TakeExtra pin nothing, whatever others reserve, until ForgoExtra of as many.
  absl::Status ReserveExtra(size_t count);
  void ForgoExtra(size_t count);

 private:
  GpuPool(const GpuDriver* driver, GpuPatience* patience, const GpuPlace& place, size_t slot_bytes)
      : driver_(driver), patience_(patience), place_(place), slot_bytes_(slot_bytes) {}

  struct Pinned {
    char* data;
    size_t bytes;
  };

  absl::StatusOr<char*> Pin(size_t bytes) TCPX_REQUIRES(mutex_);
  void Unpin(const Pinned& pinned);
  absl::Status PrepareSlot(GpuSlot* slot, char* data);
  absl::Status PinExtra() TCPX_REQUIRES(mutex_);

  const GpuDriver* const driver_;
  GpuPatience* const patience_;
  const GpuPlace place_;
  const size_t slot_bytes_;
  CuStream stream_ = nullptr;
  CuEvent drained_ = nullptr;  // of who awaits the copies
  std::atomic<bool> stuck_{false};
  std::atomic<bool> keeps_memory_{false};
  std::vector<GpuSlot> slots_;
  // A stack: index + 1 of its top, 0 where it is empty; above it a count, so that a top that was taken and given back
  // meanwhile is known from one that stalled.
  std::atomic<uint64_t> free_{0};

  Mutex mutex_;
  std::vector<Pinned> pinned_ TCPX_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<GpuSlot>> extra_ TCPX_GUARDED_BY(mutex_);
  std::vector<GpuSlot*> extra_free_ TCPX_GUARDED_BY(mutex_);
  size_t reserved_ TCPX_GUARDED_BY(mutex_) = 0;  // of extra_, free or taken
};

// The slots that one connection may use: its own one, and of the pool's up to kShared at once.
class GpuAllowance {
 public:
  static constexpr int kShared = 32;
  static constexpr int kSlots = kShared + 1;

  static absl::StatusOr<std::unique_ptr<GpuAllowance>> Open(GpuPool* pool);
  ~GpuAllowance();

  GpuPool& pool() const { return *pool_; }
  GpuSlot* Take();
  void Give(GpuSlot* slot);
  bool HasRoom() const;
  // Takes back all slots that are still lent. No thread and no copy may use them afterwards.
  void Reset();
  // Instead of Reset: copies may use them.
  void Lose();

 private:
  GpuAllowance(GpuPool* pool, GpuSlot* own) : pool_(pool), own_(own), own_free_(own) {}

  GpuPool* const pool_;
  GpuSlot* const own_;
  std::atomic<GpuSlot*> own_free_;  // null while it is lent
  bool own_lost_ = false;
  std::atomic<int> shared_{0};  // slots of the pool that are lent
};

}  // namespace tcpx
