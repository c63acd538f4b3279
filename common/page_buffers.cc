#include "common/page_buffers.h"

#include <utility>

namespace tcpx {

PageBuffer PageBuffers::Take() {
  if (!busy_.test_and_set(std::memory_order_acquire)) {
    PageBuffer buffer;
    if (!kept_.empty()) {
      buffer = std::move(kept_.back());
      kept_.pop_back();
    }
    busy_.clear(std::memory_order_release);
    if (buffer != nullptr) return buffer;
  }
  return PageBuffer(static_cast<char*>(::operator new[](bytes_, kPageAlignment)));
}

void PageBuffers::Give(PageBuffer buffer) {
  if (busy_.test_and_set(std::memory_order_acquire)) return;  // Freed: another thread is at the pool.
  if (kept_.capacity() == 0) kept_.reserve(kKeptMax);
  if (kept_.size() < kKeptMax) kept_.push_back(std::move(buffer));
  busy_.clear(std::memory_order_release);
}

}  // namespace tcpx
