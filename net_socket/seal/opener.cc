#include "net_socket/seal/opener.h"

#include <cstdint>
#include <cstring>
#include <utility>

namespace tcpx {

// 0: its length is not here yet.
size_t Opener::needed() const {
  if (end_ - begin_ < kSealedHeaderBytes) return 0;
  uint32_t length = 0;
  std::memcpy(&length, place_ + begin_, sizeof(length));
  return length + kSealBytes;
}

iovec Opener::Room(bool idle) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (idle && end_ == 0) GiveBack();
  if (buffer_ == nullptr && !(idle && end_ == 0)) {
    buffer_ = buffers_->Take();
    std::memcpy(buffer_.get(), place_ + begin_, end_ - begin_);
    place_ = buffer_.get();
    capacity_ = kSealBufferBytes;
    end_ -= std::exchange(begin_, 0);
  }
  // What is held is less than a record: it moves only where the rest of that, or its length, would find no room.
  if (begin_ > 0 && capacity_ - begin_ < std::max(needed(), kSealedBytesMax / 2)) {
    std::memmove(place_, place_ + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  return {place_ + end_, capacity_ - end_};
}

void Opener::GiveBack() {
  const size_t held = end_ - begin_;
  if (buffer_ == nullptr || held > kOwnBytes) return;
  std::memcpy(own_, place_ + begin_, held);
  buffers_->Give(std::move(buffer_));
  place_ = own_;
  capacity_ = kOwnBytes;
  begin_ = 0;
  end_ = held;
}

size_t Opener::next() {
  if (broken_) return 0;
  const size_t record = needed();
  if (record == 0) return 0;
  if (record <= kSealBytes || record > kSealedBytesMax + kSealBytes) {
    broken_ = true;
    return 0;
  }
  return end_ - begin_ < record ? 0 : record - kSealBytes;
}

bool Opener::Open(char* out) {
  const size_t bytes = next();
  if (bytes == 0) return false;
  const char* const record = place_ + begin_;
  AeadNonce nonce;
  Aead* const aead = keys_.Next(&nonce);
  if (aead == nullptr || !aead->Open(nonce, record, kSealedHeaderBytes, record + kSealedHeaderBytes, bytes, out)) {
    broken_ = true;
    return false;
  }
  begin_ += bytes + kSealBytes;
  return true;
}

const char* Opener::OpenInPlace() {
  char* const body = place_ + begin_ + kSealedHeaderBytes;
  return Open(body) ? body : nullptr;
}

bool Opener::OpenAll(const char* sealed, size_t bytes, std::string* out) {
  for (;;) {
    while (const size_t plain = next()) {
      const char* const text = OpenInPlace();
      if (text == nullptr) return false;
      out->append(text, plain);
    }
    if (broken_ || bytes == 0) return !broken_;
    const iovec room = Room();
    const size_t part = std::min(bytes, room.iov_len);
    std::memcpy(room.iov_base, sealed, part);
    Took(part);
    sealed += part;
    bytes -= part;
  }
}

}  // namespace tcpx
