// chunk_payload.h: the payload of the chunk that a lane is reading.
//
// Purpose: knows where its next bytes go: to their place in the message, or, one after the other, to the places that
//          the message's sink lends (GPU memory).
// Threads: one at a time. Lifetime: borrows the receive until Land. Units: bytes. Errors: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "net_socket/message/posted_receive.h"
#include "net_socket/message/wire.h"
#include "net_socket/receive/forward_copy.h"

namespace tcpx {

class ChunkPayload {
 public:
  // `lane` is the lane's number in its connection.
  explicit ChunkPayload(int lane) : lane_(lane) {}

  // `chunk` was claimed, and comes next.
  void Begin(const FrameHeader& chunk, PostedReceive* receive);
  // True exactly between Begin and Land.
  bool open() const { return receive_ != nullptr; }

  // Where its next bytes go, as far as there is a place.
  char* at() const { return at_; }
  size_t rest() const { return rest_; }
  // Still to come, with those that have no place yet.
  size_t missing() const { return rest_ + unplaced_; }
  // True exactly when it must not be read straight to its place.
  bool through_stage() const { return through_stage_; }
  // True exactly when the next bytes have no place yet.
  bool starved() const { return rest_ == 0 && unplaced_ > 0; }

  // Another `bytes` of it are in their place.
  void Placed(size_t bytes) {
    at_ += bytes;
    rest_ -= bytes;
  }
  // Copies what has a place from `bytes` at `from`. Returns how much that was.
  size_t Copy(const char* from, size_t bytes) {
    const size_t part = std::min(rest_, bytes);
    if (part > 0) ForwardCopy(at_, from, part);
    Placed(part);
    return part;
  }
  // Its place is full: the sink may have it.
  void LetGo() {
    if (place_ != nullptr) sink_->Filled(std::exchange(place_, nullptr));
  }
  // A place for what has none. False: none is free.
  bool TakePlace(const FrameHeader& chunk);
  // All of it is in place. True when that completed the message.
  bool Land(const FrameHeader& chunk);

 private:
  void NoteTimes(PostedReceive* receive, const FrameHeader& chunk, bool landed) const;

  const int lane_;
  PostedReceive* receive_ = nullptr;
  char* at_ = nullptr;
  size_t rest_ = 0;
  bool through_stage_ = false;
  PayloadSink* sink_ = nullptr;    // the receive's; null too where the chunk is empty
  PayloadPlace* place_ = nullptr;  // being filled
  size_t unplaced_ = 0;
};

}  // namespace tcpx
