// posted_receive.h: where messages land: the posted buffers of a receive comm, found by sequence number.
//
// Purpose: lanes claim the place of each chunk here before they write a byte of it; a message is whole once all of its
//          bytes were claimed and have landed. A lane that claimed bytes keeps the buffer from being given up, so
//          nothing a peer sends (overlaps, repeats, stale sequences) can write outside a posted buffer or after its
//          completion.
// Threads: Post and HasRoom by the calling thread only; Claim and Landed by the thread that moves the lane. No locks:
//          `posted` publishes a receive, the CAS on `claim` takes a part of it.
// Lifetime: the table outlives its lanes. A receive is theirs from the Claim that gave it until all of its message has
//          landed.
// Units:   bytes; a zero-byte message counts as one unit so that it is claimed and lands exactly once.
// Errors:  Claim tells what is wrong as a ClaimResult.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "net_socket/message/flight.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class TransferEvents;
struct PostedReceive;

// Bytes [offset, +bytes) of the message that `landing` is of.
struct PayloadPlace {
  char* data = nullptr;
  size_t bytes = 0;
  PostedReceive* landing = nullptr;
  uint64_t offset = 0;
  uint64_t message_bytes = 0;
};

// Where a lane puts payload that it can't write in place: the seam between lanes, which know host memory only, and
// staging for GPU memory. A receive with a sink is filled piece by piece, through places that the sink lends.
// Threads: any thread that moves a lane; each place belongs to one lane between Take and Filled. A lane of a failed
//          comm keeps its place, which the sink takes back once no thread moves the lane.
class PayloadSink {
 public:
  // A place for the first part of `wanted`, whose `data` is ignored: at most its bytes, at least one. Null: none is
  // free, and the lane waits until it is moved again.
  virtual PayloadPlace* Take(const PayloadPlace& wanted) = 0;
  // All of `place` was written. Neither it nor its receive may be touched afterwards.
  virtual void Filled(PayloadPlace* place) = 0;

 protected:
  ~PayloadSink() = default;
};

// How the payload of a message gets to where it belongs.
struct PayloadRoute {
  PayloadSink* sink = nullptr;  // null: written straight to `data`
  bool flag_lines = false;      // data of LL or LL128: no flag may be seen before its data
};

struct PostedReceive {
  std::atomic<uint64_t> landed{0};  // units whose bytes are in the memory
  std::atomic<bool> done{false};    // true exactly when the whole message is
  char* data = nullptr;             // the host's exactly when there is no sink
  PayloadRoute way;
  Relaxed<size_t> capacity;          // from `data` on
  TransferEvents* events = nullptr;  // null: no profiler listens
  // Where times are kept (comm/end_numbers.h): of irecv, of the first of several chunks, and of the latest one; else
  // 0.
  int64_t begun_ns = 0;
  Relaxed<int64_t> first_ns;
  Relaxed<int64_t> last_ns;
  // The sequence's low bits and the units claimed so far, in one word (see Claim).
  std::atomic<uint64_t> claim{0};
  std::atomic<uint64_t> message_bytes{0};  // kUnknownBytes until the first chunk
  Relaxed<uint64_t> sequence;
  Relaxed<bool> unawaited;  // nobody waits for it before it has begun
  int32_t tag = 0;
  bool in_use = false;  // the calling thread's: posted and not yet reported done

  void Begin(int64_t now_ns) {
    begun_ns = now_ns;
    first_ns = 0;
    last_ns = 0;
  }
  // Another `bytes` of a claimed chunk are in the memory. True when that completed the message, `of_bytes` long.
  bool Landed(uint64_t bytes, uint64_t of_bytes) {
    const uint64_t units = Units(bytes);
    const uint64_t before = landed.fetch_add(units, std::memory_order_acq_rel);
    if (before + units != Units(of_bytes)) return false;
    done.store(true, std::memory_order_release);
    return true;
  }
  // Nothing of it has come, and nobody waits.
  bool idle() const { return unawaited && message_bytes.load(std::memory_order_relaxed) == kUnknownBytes; }
};

enum class ClaimResult {
  kClaimed,
  kNotPosted,  // its memory is still to come: the lane parks
  kTooLarge,   // the message is larger than the memory
  kBroken,     // the peer broke the format: repeated, overlapping or contradicting chunks
};

// Where payload goes: the seam between the lanes and what they fill.
class Destination {
 public:
  // Takes bytes [offset, +length) of message `chunk.sequence`. On kClaimed they are the caller's to write at
  // (*out)->data + offset, or through its sink. On kTooLarge *out is set too.
  virtual ClaimResult Claim(const FrameHeader& chunk, PostedReceive** out) = 0;
  // Chunks of messages below it are not answered with kNotPosted. It never decreases.
  virtual uint64_t posted() const = 0;

 protected:
  ~Destination() = default;
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

  ClaimResult Claim(const FrameHeader& chunk, PostedReceive** out) override;

 private:
  const size_t slots_;
  const bool match_tags_;
  std::unique_ptr<PostedReceive[]> receives_;
  std::atomic<uint64_t> posted_{0};
};

}  // namespace tcpx
