// seal_buffers.h: room for sealed bytes, borrowed while a socket has some.
//
// Purpose: an idle socket owns next to nothing, and those that one thread moves share what is warm in its caches.
//
// Threads: any; Take and Give never wait.
// Units:   bytes; every buffer has kSealBufferBytes.
// Errors:  none; Take allocates where there is none.
#ifndef TCPX_NET_SOCKET_SEAL_SEAL_BUFFERS_H_
#define TCPX_NET_SOCKET_SEAL_SEAL_BUFFERS_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace tcpx {

// Eight records of the longest kind, and what is small beside them. Half of it made messages of 64 to 512 KiB 7 % slower,
// twice as much no faster (docs/experiments.md).
inline constexpr size_t kSealBufferBytes = (512 + 8) * 1024;

struct SealBufferDeleter {
  void operator()(char* buffer) const { ::operator delete[](buffer, std::align_val_t{4096}); }
};
using SealBuffer = std::unique_ptr<char[], SealBufferDeleter>;

class SealBuffers {
 public:
  SealBuffer Take();
  void Give(SealBuffer buffer);

 private:
  static constexpr size_t kKeptMax = 16;

  std::atomic_flag busy_ = ATOMIC_FLAG_INIT;
  std::vector<SealBuffer> kept_;
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
  SealBuffer buffer_;
};

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_SEAL_SEAL_BUFFERS_H_
