#include "tests/support/fake_cuda/device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace tcpx {
namespace {

constexpr uintptr_t kPage = 64 << 10;  // of a GPU: where an allocation begins

// Maps the file without access, at a multiple of kPage.
void* MapAligned(int fd, size_t bytes) {
  void* const reserved = mmap(nullptr, bytes + kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED) return MAP_FAILED;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(reserved);
  const uintptr_t aligned = (begin + kPage - 1) / kPage * kPage;
  const uintptr_t end = aligned + (bytes + 4095) / 4096 * 4096;
  if (aligned > begin) munmap(reserved, aligned - begin);
  if (begin + bytes + kPage > end) munmap(reinterpret_cast<void*>(end), begin + bytes + kPage - end);
  return mmap(reinterpret_cast<void*>(aligned), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0);
}

}  // namespace

uint64_t DeviceMemory::Allocate(size_t bytes) {
  const int fd = memfd_create("fake_cuda", MFD_CLOEXEC);
  if (fd < 0) return 0;
  void* view = MAP_FAILED;
  void* address = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    view = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    address = MapAligned(fd, bytes);
  }
  close(fd);
  if (view == MAP_FAILED || address == MAP_FAILED) return 0;
  const uint64_t at = reinterpret_cast<uint64_t>(address);
  allocations_[at] = {static_cast<char*>(view), bytes};
  return at;
}

bool DeviceMemory::Free(uint64_t address) {
  auto found = allocations_.find(address);
  if (found == allocations_.end()) return false;
  munmap(found->second.view, found->second.bytes);
  munmap(reinterpret_cast<void*>(address), found->second.bytes);
  allocations_.erase(found);
  return true;
}

char* DeviceMemory::View(uint64_t address, size_t bytes) const {
  auto found = allocations_.upper_bound(address);
  if (found == allocations_.begin()) return nullptr;
  --found;
  const uint64_t offset = address - found->first;
  if (offset > found->second.bytes || bytes > found->second.bytes - offset) return nullptr;
  return found->second.view + offset;
}

bool DeviceMemory::Pin(const void* data, size_t bytes) {
  if (!pinned_.emplace(reinterpret_cast<uint64_t>(data), bytes).second) return false;
  pinned_bytes_ += bytes;
  pinned_bytes_max_ = std::max(pinned_bytes_max_, pinned_bytes_);
  return true;
}

bool DeviceMemory::Unpin(const void* data) {
  auto found = pinned_.find(reinterpret_cast<uint64_t>(data));
  if (found == pinned_.end()) return false;
  pinned_bytes_ -= found->second;
  pinned_.erase(found);
  return true;
}

bool DeviceMemory::IsPinned(uint64_t address) const {
  auto found = pinned_.upper_bound(address);
  if (found == pinned_.begin()) return false;
  --found;
  return address - found->first < found->second;
}

}  // namespace tcpx
