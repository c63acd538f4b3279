// folded_memory.h: many addresses of little memory.
//
// Purpose: for transfers of gigabytes. All of the range but the pages of its two ends, `begin` and `end`, is the same
//          few pages again and again, between two that nobody may touch.
//
// Threads: any.
// Units:   bytes.
// Errors:  data() is null where the kernel gave none.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace tcpx {

class FoldedMemory {
 public:
  static constexpr size_t kFold = 4 << 20;
  static constexpr size_t kPage = 4096;

  // `begin` and the byte before `end` lie in folds of their own.
  FoldedMemory(size_t bytes, size_t begin, size_t end) : bytes_((bytes + kFold - 1) / kFold * kFold) {
    const int fd = memfd_create("folded", MFD_CLOEXEC);
    void* const all = mmap(nullptr, bytes_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all != MAP_FAILED) all_ = static_cast<char*>(all);
    bool mapped = fd >= 0 && all_ != nullptr && ftruncate(fd, 3 * kFold) == 0;
    for (size_t at = 0; mapped && at < bytes_; at += kFold) {
      const bool first = begin / kFold == at / kFold;
      const bool last = (end - 1) / kFold == at / kFold;
      mapped = mmap(all_ + kPage + at, kFold, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                    first  ? 0
                    : last ? 2 * kFold
                           : kFold) != MAP_FAILED;
    }
    if (fd >= 0) close(fd);
    if (mapped) data_ = all_ + kPage;
  }
  FoldedMemory(const FoldedMemory&) = delete;
  FoldedMemory& operator=(const FoldedMemory&) = delete;
  ~FoldedMemory() {
    if (all_ != nullptr) munmap(all_, bytes_ + 2 * kPage);
  }

  char* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_;
  char* all_ = nullptr;
  char* data_ = nullptr;
};

}  // namespace tcpx
