// seal_buffers.h: room for sealed bytes, borrowed while a socket has some (page_buffers.h).
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "common/page_buffers.h"

namespace tcpx {

// Eight records of the longest kind, and small ones in addition. Half of it made messages of 64 to 512 KiB 7 % slower,
// twice as much no faster (docs/experiments.md).
inline constexpr size_t kSealBufferBytes = (512 + 8) * 1024;

struct SealBuffers : PageBuffers {
  SealBuffers() : PageBuffers(kSealBufferBytes) {}
};

// One that is given back by itself.
class LentSealBuffer {
 public:
  LentSealBuffer() = default;
  explicit LentSealBuffer(std::shared_ptr<SealBuffers> lender) : lender_(std::move(lender)), buffer_(lender_->Take()) {}
  LentSealBuffer(LentSealBuffer&&) = default;
  LentSealBuffer& operator=(LentSealBuffer&& other) {
    GiveBack();
    lender_ = std::move(other.lender_);
    buffer_ = std::move(other.buffer_);
    return *this;
  }
  ~LentSealBuffer() { GiveBack(); }

  // Null: there is none.
  char* get() const { return buffer_.get(); }
  void GiveBack() {
    if (buffer_ != nullptr) lender_->Give(std::move(buffer_));
    lender_ = nullptr;
  }

 private:
  std::shared_ptr<SealBuffers> lender_;
  PageBuffer buffer_;
};

}  // namespace tcpx
