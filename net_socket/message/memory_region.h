// memory_region.h: what regMr hands out.
//
// Purpose: staged copies need nothing of it; it names the memory whose use must end in deregMr.
// Threads: constant from regMr on. Lifetime: until deregMr, or its comm's end.
// Units:   bytes.
#pragma once

#include <cstddef>

namespace tcpx {

class GpuPool;

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

}  // namespace tcpx
