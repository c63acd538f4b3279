// region_table.h: the registered memory of a group, by the numbers that its ranks share.
//
// Purpose: NCCL registers in the same order on all ranks, so the count of registrations names a region everywhere. A
//          number is never used again: a late operation on a region that is gone finds nothing.
// Threads: one at a time.
// Units:   bytes.
// Errors:  a range that is not within its region is null, whatever the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "nccl/rma_api.h"

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

// For an error: what was asked of `region`, which is null where the handle names none.
std::string RangeText(uint64_t bytes, uint64_t offset, RmaHandle handle, const RmaRegion* region);

class RmaRegionTable {
 public:
  // What writes the regions that are in GPU memory. Null: none is.
  GpuWriter* writer() const { return writer_; }
  void SetWriter(GpuWriter* writer) { writer_ = writer; }
  RmaHandle Add(void* data, size_t bytes, MemoryType type, RmaUse use);
  // It is there no more. Nothing: it was not.
  std::optional<RmaRegion> Take(RmaHandle handle);
  // Null: there is none.
  const RmaRegion* Find(RmaHandle handle) const;
  // By the number on the wire.
  const RmaRegion* FindId(uint32_t id) const { return Find(RmaHandle{id} + 1); }
  // By handle.
  const absl::flat_hash_map<RmaHandle, RmaRegion>& all() const { return regions_; }
  // True if any region is a window of the user.
  bool has_windows() const;

 private:
  GpuWriter* writer_ = nullptr;
  uint32_t next_ = 0;
  absl::flat_hash_map<RmaHandle, RmaRegion> regions_;
};

}  // namespace tcpx
