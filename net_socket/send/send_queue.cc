#include "net_socket/send/send_queue.h"

#include <algorithm>

namespace tcpx {

void SendQueue::StartChunk(SendRequest* request, size_t offset) const {
  request->chunk_offset = offset;
  request->chunk_length = std::min(request->bytes - offset, chunk_bytes_max_);
  EncodeChunkHeader(*request, offset, request->chunk_length, request->padding, request->header);
}

void SendQueue::Push(SendRequest* request, uint16_t padding) {
  request->next = nullptr;
  request->padding = padding;
  StartChunk(request, 0);
  (empty() ? head_ : tail_->next) = request;
  tail_ = request;
  waiting_bytes_ += request->bytes;
}

int SendQueue::Gather(iovec* iov, size_t* bytes) const {
  int count = 0;
  uint64_t skip = head_taken_;
  constexpr uint64_t kAll = ~uint64_t{0};
  uint64_t left = kAll;
  size_t room = held_ == nullptr ? SIZE_MAX : held_->room() + (head_taken_ > 0 ? 1 : 0);
  for (const SendRequest* at = head_; at != nullptr && room > 0 && count + 3 <= kIovMax; at = at->next, --room) {
    const SendRequest& request = *at;
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
  while (bytes > 0 && !empty()) {
    SendRequest* request = head_;
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
      head_ = request->next;
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
