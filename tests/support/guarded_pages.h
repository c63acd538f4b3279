// guarded_pages.h: memory between two pages that nobody may touch.
//
// Purpose: a byte that is written or read outside of it ends the process, in every thread.
// Threads: any.
// Units:   bytes; `bytes` is rounded up to pages, and the memory ends where the pages end.
// Errors:  data() is null where the kernel gave none.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace tcpx {

class GuardedPages {
 public:
  static constexpr size_t kPage = 4096;

  explicit GuardedPages(size_t bytes) : bytes_(bytes), mapped_((bytes + kPage - 1) / kPage * kPage) {
    void* const all = mmap(nullptr, mapped_ + 2 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return;
    all_ = static_cast<char*>(all);
    (void)mprotect(all_ + kPage, mapped_, PROT_READ | PROT_WRITE);
  }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  ~GuardedPages() {
    if (all_ != nullptr) munmap(all_, mapped_ + 2 * kPage);
  }

  char* data() const { return all_ == nullptr ? nullptr : all_ + kPage + mapped_ - bytes_; }
  size_t bytes() const { return bytes_; }
  // From here on nobody may touch the memory either.
  void Forbid() { (void)mprotect(all_, mapped_ + 2 * kPage, PROT_NONE); }

 private:
  const size_t bytes_;
  const size_t mapped_;
  char* all_ = nullptr;
};

}  // namespace tcpx
