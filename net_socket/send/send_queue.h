// send_queue.h: what lane 0 has still to send, in order.
//
// Purpose: gathers the headers and payloads of many messages into one call, and keeps count of what the kernel took.
//          Knows no socket.
// Threads: one at a time. Lifetime: borrows the requests until their `left` is 0. Units: bytes. Errors: none.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "net_socket/message/request.h"
#include "net_socket/send/held_frames.h"

namespace tcpx {

class SendQueue {
 public:
  // Entries of one call: 3 a message at the most, for 32 messages and a few more. Far below UIO_MAXIOV (1024, Linux).
  static constexpr int kIovMax = 128;
  // Messages that wait for an earlier one go out once this many bytes have gathered.
  static constexpr size_t kGatherBytes = 1 << 20;

  // Messages longer than `chunk_bytes_max` travel as several chunks. With `held`, which it borrows, frames are kept
  // there, and a request is done when that says so.
  explicit SendQueue(size_t chunk_bytes_max = kChunkBytesMax, HeldFrames* held = nullptr)
      : chunk_bytes_max_(chunk_bytes_max), held_(held) {}

  bool empty() const { return head_ == nullptr; }
  // Bytes of payload not yet taken by the kernel.
  size_t waiting_bytes() const { return waiting_bytes_; }

  // Queues the whole of `request`, with `padding` meaningless bytes after it.
  void Push(SendRequest* request, uint16_t padding);
  // What to send next: entries used, 0 when there is nothing. *bytes gets the sum.
  int Gather(iovec* iov, size_t* bytes) const;
  // The kernel took the first `bytes` of what Gather gave.
  void Advance(size_t bytes);

 private:
  void StartChunk(SendRequest* request, size_t offset) const;
  // The socket took bytes of the frame that is being sent.
  void Took(SendRequest* request, size_t bytes);

  const size_t chunk_bytes_max_;
  HeldFrames* const held_;
  SendRequest* head_ = nullptr;  // the others by SendRequest::next
  SendRequest* tail_ = nullptr;  // the last of them, unless it is empty
  size_t head_taken_ = 0;        // of the head's current frame: header, payload and padding
  size_t waiting_bytes_ = 0;
};

}  // namespace tcpx
