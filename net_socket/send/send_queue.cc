#include "net_socket/send/send_queue.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "common/dcheck.h"

namespace tcpx {

SendQueue::SendQueue(size_t capacity, size_t chunk_bytes_max, HeldFrames* held)
    : mask_(capacity - 1), chunk_bytes_max_(chunk_bytes_max), held_(held), ring_(new SendRequest*[capacity]) {
  TCPX_DCHECK(absl::has_single_bit(capacity));
}

void SendQueue::StartChunk(SendRequest* request, size_t offset) const {
  request->chunk_offset = offset;
  request->chunk_length = std::min(request->bytes - offset, chunk_bytes_max_);
  EncodeChunkHeader(*request, offset, request->chunk_length, request->padding, request->header);
}

void SendQueue::Push(SendRequest* request, uint16_t padding) {
  request->padding = padding;
  StartChunk(request, 0);
  ring_[tail_++ & mask_] = request;
  waiting_bytes_ += request->bytes;
}

int SendQueue::Gather(iovec* iov, size_t* bytes) const {
  int count = 0;
  uint64_t skip = head_taken_;
  constexpr uint64_t kAll = ~uint64_t{0};
  uint64_t left = kAll;
  const size_t room = held_ == nullptr ? tail_ - head_ : held_->room() + (head_taken_ > 0 ? 1 : 0);
  for (size_t i = head_; i != tail_ && i - head_ < room && count + 3 <= kIovMax; ++i) {
    const SendRequest& request = *ring_[i & mask_];
    AppendPart(request.header, kHeaderBytes, &skip, &left, iov, &count);
    AppendPart(request.data + request.chunk_offset, request.chunk_length, &skip, &left, iov, &count);
    AppendPart(kPadding, request.padding, &skip, &left, iov, &count);
    if (request.chunk_offset + request.chunk_length < request.bytes) break;  // Its next header is not made yet.
  }
  *bytes = kAll - left;
  return count;
}

void SendQueue::Took(SendRequest* request, size_t bytes) {
  if (held_ != nullptr && head_taken_ == 0) {
    const HeldFrames::Payload payload{request->data + request->chunk_offset, request->chunk_length, request->padding};
    held_->Begin(request->header, payload, request);
  }
  head_taken_ += bytes;
  if (held_ != nullptr) held_->Sent(bytes);
}

void SendQueue::Advance(size_t bytes) {
  while (bytes > 0 && head_ != tail_) {
    SendRequest* request = ring_[head_ & mask_];
    const size_t payload_end = kHeaderBytes + request->chunk_length;
    const size_t frame = payload_end + request->padding;
    const size_t step = std::min(bytes, frame - head_taken_);
    const size_t payload_before = std::clamp(head_taken_, kHeaderBytes, payload_end);
    Took(request, step);
    bytes -= step;
    waiting_bytes_ -= std::clamp(head_taken_, kHeaderBytes, payload_end) - payload_before;
    if (head_taken_ < frame) return;
    head_taken_ = 0;
    const size_t next = request->chunk_offset + request->chunk_length;
    const bool last = next >= request->bytes;
    const bool copy = request->chunk_length <= kCopiedPayloadBytesMax;
    if (last) {
      ++head_;
    } else {
      StartChunk(request, next);
    }
    // The request may be gone after this.
    if (held_ != nullptr) {
      held_->Finish(copy);
    } else if (last) {
      request->left.store(0, std::memory_order_release);
    }
  }
}

}  // namespace tcpx
