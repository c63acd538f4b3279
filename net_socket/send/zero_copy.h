// zero_copy.h: whether a lane sends its next chunk without a copy (io_uring's SENDMSG_ZC), and where chunks so sent
// wait until the kernel has let go of them.
//
// Purpose: zero-copy pays only on a path that takes the caller's pages to the device. The kernel tells afterwards
//          whether it copied all the same (loopback always does, and late, which costs more than copying at once): a
//          lane tries, keeps it while nothing is copied, and gives it up for good otherwise.
// Threads: those of the lane.
// Source:  io_uring_prep_sendmsg_zc(3), Linux 6.1; reports of usage, Linux 6.2.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "common/params.h"
#include "net_socket/engine/engine.h"
#include "net_socket/message/wire.h"
#include "net_socket/seal/record.h"
#include "net_socket/send/stripe.h"

namespace tcpx {

// Below, pinning pages and the second completion cost more than the copy.
inline constexpr size_t kZeroCopyBytesMin = 64 << 10;

class ZeroCopyPolicy {
 public:
  // Copied chunks in a row that end it.
  static constexpr int kCopiedMax = 8;

  // As the path's profile says.
  explicit ZeroCopyPolicy(Switch choice) : forced_(choice == Switch::kOn), on_(choice != Switch::kOff) {}

  bool Wants(size_t bytes) const { return on_ && bytes >= kZeroCopyBytesMin; }
  void Notified(bool copied) {
    copied_ = copied ? copied_ + 1 : 0;
    if (copied_ >= kCopiedMax && !forced_) on_ = false;
  }
  // The kernel won't (no such operation, not on this socket, no memory to pin): also where it is forced.
  void Refused() { on_ = false; }

 private:
  const bool forced_;
  bool on_;
  int copied_ = 0;
};

// One chunk that is sent without a copy. It is over when its bytes were taken and the kernel has let go of its pages.
struct PinnedChunk {
  // The chunk whose `op` this is.
  static PinnedChunk* Of(IoOp* op) { return reinterpret_cast<PinnedChunk*>(op); }

  IoOp op;  // first, see Of
  Chunk chunk;
  bool taken = false;     // every byte was taken by the kernel
  bool released = false;  // no notification is to come
  uint64_t frame = 0;     // in HeldFrames, where there are any
  LentSealBuffer sealed;  // what is sent of a sealed lane's, until it is over
  char header[kHeaderBytes];
};

// A lane's pinned chunks, made as they are needed; they are used again, and go with the lane.
class PinnedChunks {
 public:
  // Enough to cover 16 MiB in flight in full chunks, the bandwidth-delay product of 10 Gbit/s at 13 ms.
  static constexpr size_t kMax = 32;

  // `reports_sent` false: somebody else does (HeldFrames).
  explicit PinnedChunks(bool reports_sent = true) : reports_sent_(reports_sent) {}

  // Null when all are waiting for the kernel: send by copying then.
  PinnedChunk* Take() {
    if (free_.empty()) {
      if (all_.size() == kMax) return nullptr;
      all_.push_back(std::make_unique<PinnedChunk>());
      free_.push_back(all_.back().get());
    }
    PinnedChunk* chunk = free_.back();
    free_.pop_back();
    chunk->taken = false;
    chunk->released = false;
    return chunk;
  }
  // Gives back what is over, after the request has heard of it; else leaves it.
  void Settle(PinnedChunk* chunk) {
    if (!chunk->taken || !chunk->released) return;
    const Chunk sent = chunk->chunk;
    chunk->sealed = LentSealBuffer();
    free_.push_back(chunk);
    if (reports_sent_) Striper::Sent(sent);  // The request may be gone after this.
  }
  // True exactly while the kernel holds one.
  bool InFlight() const {
    return std::any_of(all_.begin(), all_.end(), [](const auto& chunk) { return chunk->op.in_flight; });
  }

 private:
  const bool reports_sent_;
  std::vector<std::unique_ptr<PinnedChunk>> all_;
  std::vector<PinnedChunk*> free_;
};

}  // namespace tcpx
