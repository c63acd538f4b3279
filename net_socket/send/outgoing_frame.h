// outgoing_frame.h: the frame that a bulk lane is sending: a header, and the chunk's payload after it.
//
// Threads: the lane's. Lifetime: borrows the chunk's request until the frame is over. Units: bytes. Errors: none.
#pragma once

#include <sys/uio.h>

#include <cstddef>

#include "net_socket/message/wire.h"
#include "net_socket/send/stripe.h"

namespace tcpx {

class OutgoingFrame {
 public:
  void Begin(const Chunk& chunk) {
    EncodeChunkHeader(*chunk.request, chunk.offset, chunk.length, 0, header_);
    Resume(chunk, 0);
  }
  // Goes on with a chunk whose header lies elsewhere, or here, after its first `taken` bytes.
  void Resume(const Chunk& chunk, size_t taken) {
    chunk_ = chunk;
    taken_ = taken;
    record_ = false;
  }
  // A record without a body.
  void BeginRecord(FrameKind kind) {
    EncodeHeader({kind}, header_);
    chunk_ = Chunk();
    taken_ = 0;
    record_ = true;
  }
  // Nothing is left to send.
  void Clear() {
    chunk_.request = nullptr;
    record_ = false;
  }

  bool loaded() const { return chunk_.request != nullptr || record_; }
  bool is_record() const { return record_; }
  const Chunk& chunk() const { return chunk_; }
  const char* payload() const { return chunk_.request->data + chunk_.offset; }
  const char* header() const { return header_; }
  bool begun() const { return taken_ > 0; }
  // Header and payload that the kernel has not taken.
  size_t left() const { return kHeaderBytes + chunk_.length - taken_; }
  void Took(size_t bytes) { taken_ += bytes; }

  // What is left of it, in at most two pieces: entries used.
  int Gather(iovec* iov) const {
    int count = 0;
    size_t sent = 0;
    if (taken_ < kHeaderBytes) {
      iov[count++] = {const_cast<char*>(header_ + taken_), kHeaderBytes - taken_};
    } else {
      sent = taken_ - kHeaderBytes;
    }
    if (!record_) iov[count++] = {const_cast<char*>(payload() + sent), chunk_.length - sent};
    return count;
  }

 private:
  Chunk chunk_;  // no request: none
  size_t taken_ = 0;
  bool record_ = false;
  char header_[kHeaderBytes];
};

}  // namespace tcpx
