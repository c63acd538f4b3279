// posted_receive.h: where messages land: the posted buffers of a receive comm, found by sequence number.
//
// Purpose: lanes claim the place of each chunk here before they write a byte of it; a message is whole once all of its
//          bytes were claimed and have landed. A lane that claimed bytes keeps the buffer from being given up, so
//          nothing a peer sends (overlaps, repeats, stale sequences) can write outside a posted buffer or after its
//          completion.
// Threads: Post and Take by the calling thread only; Claim by the thread that moves the lane. No locks:
//          `posted` publishes a receive, the CAS on `claim` takes a part of it.
// Units:   bytes; a zero-byte message counts as one unit so that it is claimed and lands exactly once.
// Errors:  Claim tells what is wrong as a ClaimResult.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net_socket/message/destination.h"
#include "net_socket/message/flight.h"
#include "net_socket/message/wire.h"

namespace tcpx {

struct PostedReceive final : Landing {
  // The sequence's low bits and the units claimed so far, in one word (see Claim).
  std::atomic<uint64_t> claim{0};
  std::atomic<uint64_t> message_bytes{0};  // kUnknownBytes until the first chunk
  Relaxed<uint64_t> sequence;
  Relaxed<bool> unawaited;  // nobody waits for it before it has begun
  int32_t tag = 0;
  bool in_use = false;  // the calling thread's: posted and not yet reported done

  // Nothing of it has come, and nobody waits.
  bool idle() const { return unawaited && message_bytes.load(std::memory_order_relaxed) == kUnknownBytes; }
};

class PostedReceiveTable final : public Destination {
 public:
  // `slots` is the most messages posted at once; a power of two. With `match_tags` a chunk with another tag than its
  // receive's is refused.
  explicit PostedReceiveTable(size_t slots, bool match_tags = false);

  // The number of the next message to post: all below are or were posted.
  uint64_t posted() const override { return posted_.load(std::memory_order_seq_cst); }
  size_t slots() const { return slots_; }

  // Posts the buffer of message `posted()`. The slot must be free: its message done, or never used.
  PostedReceive* Post(char* data, size_t capacity, int32_t tag, TransferEvents* events = nullptr,
                      PayloadRoute way = {});
  // PostedReceives are posted in order, so the slot of the next one is known.
  size_t next_index() const { return posted_.load(std::memory_order_relaxed) & (slots_ - 1); }
  PostedReceive& NextSlot() { return receives_[next_index()]; }

  // True exactly when the slots of the next `count` messages are free.
  bool HasRoom(int count) const;

  // What is posted and has not landed whole. From any thread.
  Flight FlightNow() const;

  // *landing is a PostedReceive.
  ClaimResult Claim(const FrameHeader& chunk, Landing** landing) override;

 private:
  const size_t slots_;
  const bool match_tags_;
  std::unique_ptr<PostedReceive[]> receives_;
  std::atomic<uint64_t> posted_{0};
};

}  // namespace tcpx
