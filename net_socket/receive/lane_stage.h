// lane_stage.h: what a lane has read and not digested yet.
//
// Purpose: bytes wait here in the order in which they came. A little room is built in; a large buffer is borrowed while
//          the lane needs one.
// Threads: one at a time. Lifetime: borrows the pool, which outlives it. Units: bytes. Errors: none.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>

#include "common/page_buffers.h"

namespace tcpx {

// Measured: 128 KiB makes 16 and 64 KiB messages arrive with one call; 16 KiB is no better than reading the header
// first, 256 KiB no better than 128 (docs/experiments.md).
inline constexpr size_t kStageBytes = 128 * 1024;

// Read-ahead buffers that lanes borrow while they hold data.
struct StagePool : PageBuffers {
  StagePool() : PageBuffers(kStageBytes) {}
};

class LaneStage {
 public:
  // Built in: one header, and a little more so that a short message needs no second call.
  static constexpr size_t kCarryBytes = 128;

  // `pool` null: it never borrows.
  explicit LaneStage(StagePool* pool) : pool_(pool) {}
  ~LaneStage() {
    if (borrowed_ != nullptr) pool_->Give(std::move(borrowed_));
  }

  // What waits.
  const char* data() const { return place_ + begin_; }
  size_t bytes() const { return end_ - begin_; }
  // The first `bytes` of it were digested.
  void Drop(size_t bytes) { begin_ += bytes; }

  // Where more may be read to.
  char* room() { return place_ + end_; }
  size_t room_bytes() const { return capacity_ - end_; }
  // Another `bytes` were read.
  void Came(size_t bytes) { end_ += bytes; }

  // Before a read: moves what waits to the front, into a borrowed buffer where it `borrows`.
  void Open(bool borrows) {
    if (borrows && pool_ != nullptr && borrowed_ == nullptr) {
      borrowed_ = pool_->Take();
      MoveTo(borrowed_.get());
      capacity_ = kStageBytes;
    } else if (begin_ > 0) {
      MoveTo(place_);
    }
  }
  // Gives a borrowed buffer back as soon as what waits fits the built-in room.
  void Settle() {
    if (borrowed_ == nullptr || bytes() > kCarryBytes) return;
    MoveTo(carry_);
    capacity_ = kCarryBytes;
    pool_->Give(std::move(borrowed_));
  }

 private:
  void MoveTo(char* place) {
    const size_t waiting = bytes();
    if (waiting > 0) std::memmove(place, data(), waiting);
    place_ = place;
    begin_ = 0;
    end_ = waiting;
  }

  StagePool* const pool_;
  char* place_ = carry_;  // carry_, or the borrowed buffer
  size_t capacity_ = kCarryBytes;
  size_t begin_ = 0;
  size_t end_ = 0;
  PageBuffer borrowed_;
  char carry_[kCarryBytes];
};

}  // namespace tcpx
