// stripe.h: cuts bulk messages into chunks that lanes pull, in order, from one shared cursor.
//
// Purpose: no lane has a fixed share. A lane that can send takes the next chunk; a slow one takes fewer and smaller
//          ones. Because there is one cursor, sequence numbers never decrease on any lane.
// Threads: Post by the calling thread; Pull and Sent by the thread that moves a lane.
// Lifetime: borrows a request from Post until its `left` is 0.
// Units:   bytes; cuts lie at multiples of kCutBytes of the message. Errors: none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/mutex.h"
#include "net_socket/engine/progress_pool.h"
#include "net_socket/message/request.h"

namespace tcpx {

// A line of NCCL's LL128 protocol: a cut never parts data from its flag (NCCL 2.12 to 2.30).
inline constexpr size_t kCutBytes = 128;

struct Chunk {
  SendRequest* request = nullptr;
  size_t offset = 0;
  size_t length = 0;
};

class Striper {
 public:
  // Room for `capacity` messages, a power of two.
  Striper(size_t capacity, size_t chunk_bytes_max);

  void Post(SendRequest* request);
  // True exactly when every posted message has been pulled whole.
  bool drained() const { return pulled_.load(std::memory_order_seq_cst) == posted_.load(std::memory_order_seq_cst); }
  // Posted, and not pulled yet.
  uint64_t left_bytes() const {
    const uint64_t pulled = pulled_bytes_.load(std::memory_order_acquire);  // First: never more than was posted.
    return posted_bytes_.load(std::memory_order_relaxed) - pulled;
  }
  // The next chunk for a lane that wants `want_bytes` at most and shall take `share` (0 to 1) of what is posted, but
  // `least` at the least; false when there is none.
  bool Pull(size_t want_bytes, double share, size_t least, Chunk* chunk);
  // The kernel took the whole of `chunk`.
  static void Sent(const Chunk& chunk);

  // How long a chunk to cut where `rest` bytes of a message are left: from `least` to `most`, cut at kCutBytes, and
  // never so that a tail below `least` remains.
  static size_t ChunkBytes(size_t rest, size_t want_bytes, size_t least, size_t most);

 private:
  const size_t mask_;
  const size_t chunk_bytes_max_;
  std::unique_ptr<SendRequest*[]> ring_;
  std::atomic<uint64_t> posted_{0};
  std::atomic<uint64_t> pulled_{0};
  Mutex mutex_;  // among lanes; the calling thread takes it only where it moves lanes itself
  size_t offset_ TCPX_GUARDED_BY(mutex_) = 0;  // pulled of message `pulled_`
  std::atomic<uint64_t> posted_bytes_{0};
  std::atomic<uint64_t> pulled_bytes_{0};  // written under mutex_
};

// Which bulk lanes of a connection wait for work, and waking one of them.
// Purpose: to wake a thread that sleeps costs 7 to 10 us. So a thread that posts wakes one lane; a lane that finds more
//          work than it takes wakes the next, in its own thread. No wake is lost: a lane says that it is idle before it
//          looks for work the last time, and a thread that posts looks for idle lanes after posting.
// Threads: Idle and WakeNext by a lane's thread; WakeOne by the calling thread; Close by the thread that detaches the
//          lanes, before it does; Take by any.
// Lifetime: lanes outlive their Detach, which comes after Close. Errors: none.
class IdleLanes {
 public:
  explicit IdleLanes(int lanes) : count_(lanes), lanes_(new Entry[lanes]) {}

  // Before the lane is attached, and before anything is posted.
  void Enter(int index, PoolLane* lane) { lanes_[index].lane = lane; }

  // From here on the lane waits until somebody takes it.
  void Idle(int index) { lanes_[index].idle.store(true, std::memory_order_seq_cst); }
  // True exactly when it was idle.
  bool Take(int index) {
    std::atomic<bool>& idle = lanes_[index].idle;
    return idle.load(std::memory_order_seq_cst) && idle.exchange(false, std::memory_order_seq_cst);
  }

  // Kicks one idle lane, if there is any.
  void WakeOne();
  // The same, unless closed.
  void WakeNext();
  // Returns once no lane is being kicked by another, nor will be.
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
  }

 private:
  struct Entry {
    PoolLane* lane = nullptr;
    std::atomic<bool> idle{false};
  };

  const int count_;
  const std::unique_ptr<Entry[]> lanes_;
  Mutex mutex_;  // among lanes, and Close: a lane that is kicked is not detached meanwhile
  bool closed_ TCPX_GUARDED_BY(mutex_) = false;
};

}  // namespace tcpx
