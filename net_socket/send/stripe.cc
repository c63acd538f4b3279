#include "net_socket/send/stripe.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "common/clock.h"
#include "common/dcheck.h"

namespace tcpx {

Striper::Striper(size_t capacity, size_t chunk_bytes_max)
    : mask_(capacity - 1), chunk_bytes_max_(chunk_bytes_max), ring_(new SendRequest*[capacity]) {
  TCPX_DCHECK(absl::has_single_bit(capacity));
}

void Striper::Post(SendRequest* request) {
  const uint64_t index = posted_.load(std::memory_order_relaxed);
  ring_[index & mask_] = request;
  posted_bytes_.fetch_add(request->bytes, std::memory_order_relaxed);
  posted_.store(index + 1, std::memory_order_seq_cst);
}

bool Striper::Pull(size_t want_bytes, double share, size_t least, Chunk* chunk) {
  MutexLock lock(mutex_);
  const uint64_t index = pulled_.load(std::memory_order_relaxed);
  if (index == posted_.load(std::memory_order_seq_cst)) return false;
  SendRequest* request = ring_[index & mask_];
  const uint64_t left = left_bytes();
  const size_t fair = static_cast<size_t>(static_cast<double>(left) * share);
  const size_t length = ChunkBytes(request->bytes - offset_, std::min(want_bytes, fair), least, chunk_bytes_max_);
  pulled_bytes_.store(pulled_bytes_.load(std::memory_order_relaxed) + length, std::memory_order_release);
  *chunk = {request, offset_, length};
  offset_ += length;
  if (offset_ == request->bytes) {
    offset_ = 0;
    pulled_.store(index + 1, std::memory_order_seq_cst);
  }
  return true;
}

void Striper::Sent(const Chunk& chunk) {
  if (chunk.request->begun_ns != 0) chunk.request->last_ns = MonotonicNanos();
  chunk.request->left.fetch_sub(Units(chunk.length), std::memory_order_acq_rel);
}

size_t Striper::ChunkBytes(size_t rest, size_t want_bytes, size_t least, size_t most) {
  size_t length = std::clamp(want_bytes, least, most);
  length = std::max(length / kCutBytes * kCutBytes, kCutBytes);
  if (length >= rest || rest - length < least) return std::min(rest, kChunkBytesMax);
  return length;
}

void IdleLanes::WakeOne() {
  for (int i = 0; i < count_; ++i) {
    if (!Take(i)) continue;
    ProgressPool::Kick(lanes_[i].lane);
    return;
  }
}

void IdleLanes::WakeNext() {
  const auto idle = [](const Entry& lane) { return lane.idle.load(std::memory_order_seq_cst); };
  if (std::none_of(lanes_.get(), lanes_.get() + count_, idle)) return;
  MutexLock lock(mutex_);
  if (!closed_) WakeOne();
}

}  // namespace tcpx
