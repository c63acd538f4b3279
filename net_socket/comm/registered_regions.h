// registered_regions.h: the memory that NCCL has registered with a comm.
//
// Threads: Make from any; Add and Remove under the comm's mutex.
// Lifetime: borrows the setup. A region lives until Remove, or as long as this.
// Errors:  Make: kInvalidArgument for memory of a kind that was not announced, else the GPU driver's.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "nccl/plugin_api.h"

namespace tcpx {

class GpuPool;
struct ConnectionSetup;

// What regMr hands out. Staged copies need nothing of it; it names the memory whose use must end in deregMr.
// Threads: constant from regMr on. Units: bytes.
class MemoryRegion {
 public:
  GpuPool* gpu = nullptr;  // null exactly when it is host memory
  char* data = nullptr;
  size_t bytes = 0;

  // True exactly when a request for `length` bytes at `at`, of the region `own`, uses this memory. One without a region
  // of its own counts for all memory that it overlaps.
  bool UsedBy(const MemoryRegion* own, const char* at, size_t length) const {
    if (own != nullptr) return own == this;
    return at < data + bytes && at + length > data;
  }
};

class RegisteredRegions {
 public:
  explicit RegisteredRegions(const ConnectionSetup* setup) : setup_(setup) {}

  // A region that is not registered yet: asking the driver takes its time.
  absl::StatusOr<std::unique_ptr<MemoryRegion>> Make(void* data, size_t bytes, MemoryType type) const;
  MemoryRegion* Add(std::unique_ptr<MemoryRegion> region);
  // Not found: a no-op.
  void Remove(const MemoryRegion* region) { regions_.erase(region); }
  size_t count() const { return regions_.size(); }

 private:
  const ConnectionSetup* const setup_;
  absl::flat_hash_map<const MemoryRegion*, std::unique_ptr<MemoryRegion>> regions_;
};

}  // namespace tcpx
