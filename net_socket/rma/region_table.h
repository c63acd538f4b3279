// region_table.h: the registered memory of a group, by the numbers that its ranks share, and operations on it.
//
// Purpose: NCCL registers in the same order on all ranks, so the count of registrations names a region everywhere. A
//          number is never used again: a late operation on a region that is gone finds nothing. Of an operation each
//          handle is looked up once, and what can be checked on this rank is checked. Sizes of the peer's regions are
//          the peer's to check.
// Threads: one at a time. Lifetime: a checked operation is valid until the table changes.
// Units:   bytes.
// Errors:  of operations kFailedPrecondition in words: no byte outside of a region is touched; CommRegions: as
//          TransferApi::RegisterMemory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/plugin_api.h"
#include "nccl/rma_api.h"
#include "net_socket/rma/record.h"

namespace tcpx {

class GpuWriter;

struct RmaRegion {
  uint32_t id = 0;
  char* data = nullptr;
  size_t bytes = 0;
  MemoryType type = MemoryType::kHost;
  RmaUse use = RmaUse::kOther;

  bool on_gpu() const { return type != MemoryType::kHost; }
  // Only signals change it.
  bool ours() const { return use == RmaUse::kSignals; }
  bool Contains(uint64_t offset, uint64_t length) const { return offset <= bytes && length <= bytes - offset; }
  // True if a signal may be written there: a whole word that one instruction can write.
  bool ContainsWord(uint64_t offset) const {
    return Contains(offset, sizeof(uint64_t)) && (reinterpret_cast<uintptr_t>(data) + offset) % sizeof(uint64_t) == 0;
  }
};

// A signal to host memory.
inline void AddToHostWord(char* at, uint64_t add) {
  __atomic_fetch_add(reinterpret_cast<uint64_t*>(at), add, __ATOMIC_SEQ_CST);
}

class RmaRegionTable {
 public:
  // What writes the regions that are in GPU memory. Null: none is.
  GpuWriter* writer() const { return writer_; }
  void SetWriter(GpuWriter* writer) { writer_ = writer; }
  RmaHandle Add(void* data, size_t bytes, MemoryType type, RmaUse use) {
    const uint32_t id = next_++;
    regions_[RmaHandle{id} + 1] = {id, static_cast<char*>(data), bytes, type, use};
    return RmaHandle{id} + 1;
  }
  // It is there no more. Nothing: it was not.
  std::optional<RmaRegion> Take(RmaHandle handle) {
    const auto taken = regions_.extract(handle);
    return taken.empty() ? std::nullopt : std::optional<RmaRegion>(taken.mapped());
  }
  // Null: there is none.
  const RmaRegion* Find(RmaHandle handle) const {
    const auto found = regions_.find(handle);
    return found == regions_.end() ? nullptr : &found->second;
  }
  // By the number on the wire.
  const RmaRegion* FindId(uint32_t id) const { return Find(RmaHandle{id} + 1); }
  // By handle.
  const absl::flat_hash_map<RmaHandle, RmaRegion>& all() const { return regions_; }
  // True if any region is a window of the user.
  bool has_windows() const {
    return absl::c_any_of(regions_, [](const auto& entry) { return entry.second.use == RmaUse::kWindow; });
  }

 private:
  GpuWriter* writer_ = nullptr;
  uint32_t next_ = 0;
  absl::flat_hash_map<RmaHandle, RmaRegion> regions_;
};

// An operation whose regions are known here.
struct CheckedOperation {
  RmaRecord record;                  // asks the peer for it; the caller sets `follows`, and the token of a get
  const RmaRegion* local = nullptr;  // null exactly where there are no bytes, as `remote`
  char* data = nullptr;              // in `local`
  const RmaRegion* remote = nullptr;
  const RmaRegion* signal = nullptr;  // null: none
};

absl::StatusOr<CheckedOperation> CheckOperation(const RmaRegionTable& regions, const RmaOperation& operation,
                                                uint32_t context);
// Where the peer is this rank: its side fits, too.
absl::Status CheckHere(const CheckedOperation& operation);

// For an error: what was asked of `region`, which is null where the handle names none.
std::string RangeText(uint64_t bytes, uint64_t offset, RmaHandle handle, const RmaRegion* region);

// Which regions one connection knows: one is registered with it at its first use there, and its end waits for all of
// them. Borrows the plugin and the comm.
class CommRegions {
 public:
  explicit CommRegions(TransferApi* net) : net_(net) {}

  absl::StatusOr<MemoryRegion*> For(Comm* comm, const RmaRegion& region) {
    MemoryRegion*& known = regions_[region.id];
    if (known != nullptr) return known;
    auto made = net_->RegisterMemory(comm, region.data, region.bytes, region.type);
    if (made.ok()) known = *made;
    return made;
  }
  // Afterwards neither the connection nor the kernel touches it.
  void Forget(Comm* comm, uint32_t id) {
    const auto known = regions_.find(id);
    if (known == regions_.end()) return;
    net_->DeregisterMemory(comm, known->second);
    regions_.erase(known);
  }

 private:
  TransferApi* const net_;
  absl::flat_hash_map<uint32_t, MemoryRegion*> regions_;  // by RmaRegion::id
};

}  // namespace tcpx
