// destination.h: the seam between a lane that reads chunks and the owner of the memory that they are for.
//
// Purpose: a lane asks where the payload of a chunk goes, puts it there, and counts it. It does not know what posted
//          the memory: receives do (posted_receive.h).
// Threads: Claim, Landed and posted by the thread that moves the lane.
// Lifetime: a destination outlives its lanes. A Landing is valid from the Claim that gave it until all of its message
//          has landed.
// Units:   bytes; a message without bytes counts as one unit (flight.h).
// Errors:  Claim tells what is wrong as a ClaimResult.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "net_socket/message/flight.h"
#include "net_socket/message/wire.h"

namespace tcpx {

class TransferEvents;
struct Landing;

// Where a lane puts payload that it can't write in place.
// Purpose: the seam between lanes, which know host memory only, and staging for GPU memory: a receive with a sink is
//          filled piece by piece, through places that the sink lends.
// Threads: any thread that moves a lane; each place belongs to one lane between Take and Filled.
// Units:   bytes of the message.
// Errors:  none here; a lane of a failed comm keeps its place, which the sink takes back once no thread moves the lane.

// Bytes [offset, +bytes) of the message that `landing` is of.
struct PayloadPlace {
  char* data = nullptr;
  size_t bytes = 0;
  Landing* landing = nullptr;
  uint64_t offset = 0;
  uint64_t message_bytes = 0;
};

class PayloadSink {
 public:
  // A place for the first part of `wanted`, whose `data` is ignored: at most its bytes, at least one. Null: none is
  // free, and the lane waits until it is moved again.
  virtual PayloadPlace* Take(const PayloadPlace& wanted) = 0;
  // All of `place` was written. Neither it nor its landing may be touched afterwards.
  virtual void Filled(PayloadPlace* place) = 0;

 protected:
  ~PayloadSink() = default;
};

// How the payload of a message gets to where it belongs.
struct PayloadRoute {
  PayloadSink* sink = nullptr;  // null: written straight to `data`
  bool flag_lines = false;      // data of LL or LL128: no flag may be seen before its data
};

// One message that is written into memory, as the lanes that bring its chunks know it.
struct Landing {
  std::atomic<uint64_t> landed{0};  // units whose bytes are in the memory
  std::atomic<bool> done{false};    // true exactly when the whole message is
  char* data = nullptr;             // the host's exactly when there is no sink
  PayloadRoute way;
  Relaxed<size_t> capacity;          // from `data` on
  TransferEvents* events = nullptr;  // null: no profiler listens
  // Where times are kept (comm/transfer_times.h): of irecv, of the first of several chunks, and of the latest one; else
  // 0.
  int64_t begun_ns = 0;
  Relaxed<int64_t> first_ns;
  Relaxed<int64_t> last_ns;

  void Begin(int64_t now_ns) {
    begun_ns = now_ns;
    first_ns = 0;
    last_ns = 0;
  }

  // Another `bytes` of a claimed chunk are in the memory. True when that completed the message.
  bool Landed(uint64_t bytes, uint64_t message_bytes) {
    const uint64_t units = Units(bytes);
    const uint64_t before = landed.fetch_add(units, std::memory_order_acq_rel);
    if (before + units != Units(message_bytes)) return false;
    done.store(true, std::memory_order_release);
    return true;
  }
};

enum class ClaimResult {
  kClaimed,
  kNotPosted,  // its memory is still to come: the lane parks
  kTooLarge,   // the message is larger than the memory
  kBroken,     // the peer broke the format: repeated, overlapping or contradicting chunks
};

class Destination {
 public:
  // Takes bytes [offset, +length) of message `chunk.sequence`. On kClaimed they are the caller's to write at
  // (*landing)->data + offset, or through its sink. On kTooLarge *landing is set too.
  virtual ClaimResult Claim(const FrameHeader& chunk, Landing** landing) = 0;
  // Chunks of messages below it are not answered with kNotPosted. It never decreases.
  virtual uint64_t posted() const = 0;

 protected:
  ~Destination() = default;
};

}  // namespace tcpx
