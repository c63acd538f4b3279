#include "net_socket/message/posted_receive.h"

#include <algorithm>

#include "absl/numeric/bits.h"
#include "common/dcheck.h"

namespace tcpx {
namespace {

// `claim` holds the units claimed in its low bits and the low bits of the sequence above them: a chunk of an older
// message can't take a part of a newer one that was posted to the same slot meanwhile.
constexpr int kUnitBits = 41;  // up to kMessageBytesMax inclusive
constexpr uint64_t kUnitMask = (uint64_t{1} << kUnitBits) - 1;

uint64_t ClaimWord(uint64_t sequence) { return sequence << kUnitBits; }

// Units of a receive whose whole message was claimed: no chunk, whatever message size it names, gets another part of
// it.
constexpr uint64_t kAllUnits = kUnitMask;
static_assert(kAllUnits > kMessageBytesMax);

}  // namespace

PostedReceiveTable::PostedReceiveTable(size_t slots, bool match_tags)
    : slots_(slots), match_tags_(match_tags), receives_(new PostedReceive[slots]) {
  TCPX_DCHECK(absl::has_single_bit(slots));
}

bool PostedReceiveTable::HasRoom(int count) const {
  const uint64_t next = posted_.load(std::memory_order_relaxed);
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    if (receives_[(next + i) & (slots_ - 1)].in_use) return false;
  }
  return true;
}

PostedReceive* PostedReceiveTable::Post(char* data, size_t capacity, int32_t tag, TransferEvents* events,
                                        PayloadRoute way) {
  const uint64_t sequence = posted_.load(std::memory_order_relaxed);
  PostedReceive& receive = receives_[sequence & (slots_ - 1)];
  receive.data = data;
  receive.way = way;
  receive.capacity = capacity;
  receive.sequence = sequence;
  receive.tag = tag;
  receive.events = events;
  receive.in_use = true;
  receive.unawaited = false;
  receive.landed.store(0, std::memory_order_relaxed);
  receive.message_bytes.store(kUnknownBytes, std::memory_order_relaxed);
  receive.done.store(false, std::memory_order_relaxed);
  receive.claim.store(ClaimWord(sequence), std::memory_order_release);
  posted_.store(sequence + 1, std::memory_order_seq_cst);
  return &receive;
}

Flight PostedReceiveTable::FlightNow() const {
  Flight flight;
  const uint64_t end = posted();
  for (uint64_t sequence = end - std::min<uint64_t>(end, slots_); sequence < end; ++sequence) {
    const PostedReceive& receive = receives_[sequence & (slots_ - 1)];
    if (receive.sequence != sequence || receive.done.load(std::memory_order_relaxed)) continue;
    if (receive.idle()) continue;
    if (flight.messages++ > 0) continue;
    const uint64_t message_bytes = receive.message_bytes.load(std::memory_order_relaxed);
    flight.sequence = sequence;
    flight.bytes_done = receive.landed.load(std::memory_order_relaxed);
    flight.total_known = message_bytes != kUnknownBytes;
    flight.bytes_total = flight.total_known ? message_bytes : uint64_t{receive.capacity};
  }
  return flight;
}

ClaimResult PostedReceiveTable::Claim(const FrameHeader& chunk, PostedReceive** out) {
  const uint64_t posted = posted_.load(std::memory_order_seq_cst);
  if (chunk.sequence >= posted) return ClaimResult::kNotPosted;
  if (posted - chunk.sequence > slots_) return ClaimResult::kBroken;
  PostedReceive& receive = receives_[chunk.sequence & (slots_ - 1)];
  uint64_t word = receive.claim.load(std::memory_order_acquire);
  for (;;) {
    if ((word & ~kUnitMask) != ClaimWord(chunk.sequence)) return ClaimResult::kBroken;
    const uint64_t claimed = (word & kUnitMask) + Units(chunk.length);
    if (claimed > Units(chunk.message_bytes)) return ClaimResult::kBroken;
    const uint64_t units = claimed == Units(chunk.message_bytes) ? kAllUnits : claimed;
    if (receive.claim.compare_exchange_weak(word, ClaimWord(chunk.sequence) | units, std::memory_order_acq_rel)) break;
  }
  // From here on the receive can't complete without us, also if we name another message size than the threads that
  // claimed the rest: before we did, the rest was not all, and after it was all, nobody could. So its fields are
  // constant.
  *out = &receive;
  uint64_t expected = kUnknownBytes;
  if (!receive.message_bytes.compare_exchange_strong(expected, chunk.message_bytes) &&
      expected != chunk.message_bytes) {
    return ClaimResult::kBroken;
  }
  if (match_tags_ && chunk.tag != receive.tag) return ClaimResult::kBroken;
  return chunk.message_bytes > receive.capacity ? ClaimResult::kTooLarge : ClaimResult::kClaimed;
}

}  // namespace tcpx
