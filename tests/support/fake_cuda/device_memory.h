// device_memory.h: memory that the host can't touch by its address, and pinned host memory, as fake_cuda keeps them.
//
// Threads: under the fake's mutex; what View gives may be used without it while the memory lives.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tcpx {

class DeviceMemory {
 public:
  // 0: no memory.
  uint64_t Allocate(size_t bytes);
  bool Free(uint64_t address);
  // Where the host finds [address, +bytes); null: it is not all in one allocation.
  char* View(uint64_t address, size_t bytes) const;

  bool Pin(const void* data, size_t bytes);
  bool Unpin(const void* data);
  bool IsPinned(uint64_t address) const;
  uint64_t pinned_bytes() const { return pinned_bytes_; }
  uint64_t pinned_bytes_max() const { return pinned_bytes_max_; }

 private:
  struct Allocation {
    char* view;
    size_t bytes;
  };
  std::map<uint64_t, Allocation> allocations_;
  std::map<uint64_t, size_t> pinned_;
  uint64_t pinned_bytes_ = 0;
  uint64_t pinned_bytes_max_ = 0;
};

}  // namespace tcpx
