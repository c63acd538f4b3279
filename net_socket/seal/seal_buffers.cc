#include "net_socket/seal/seal_buffers.h"

#include <utility>

namespace tcpx {

SealBuffer SealBuffers::Take() {
  if (!busy_.test_and_set(std::memory_order_acquire)) {
    SealBuffer buffer;
    if (!kept_.empty()) {
      buffer = std::move(kept_.back());
      kept_.pop_back();
    }
    busy_.clear(std::memory_order_release);
    if (buffer != nullptr) return buffer;
  }
  return SealBuffer(static_cast<char*>(::operator new[](kSealBufferBytes, std::align_val_t{4096})));
}

void SealBuffers::Give(SealBuffer buffer) {
  if (busy_.test_and_set(std::memory_order_acquire)) return;  // Freed: another thread is at the pool.
  if (kept_.capacity() == 0) kept_.reserve(kKeptMax);
  if (kept_.size() < kKeptMax) kept_.push_back(std::move(buffer));
  busy_.clear(std::memory_order_release);
}

}  // namespace tcpx
