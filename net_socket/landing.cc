#include "net_socket/landing.h"

namespace tcpx {
namespace {

// `claim` holds the units claimed in its low bits and the low bits of the sequence above them: a chunk of an older
// message can't take a part of a newer one that was posted to the same slot meanwhile.
constexpr int kUnitBits = 41;  // up to kMessageBytesMax inclusive
constexpr uint64_t kUnitMask = (uint64_t{1} << kUnitBits) - 1;

uint64_t ClaimWord(uint64_t sequence) { return sequence << kUnitBits; }

// Units of a landing whose whole message was claimed: no chunk, whatever message size it names, gets another part of
// it.
constexpr uint64_t kAllUnits = kUnitMask;
static_assert(kAllUnits > kMessageBytesMax);

uint64_t Units(uint64_t bytes) { return bytes == 0 ? 1 : bytes; }

}  // namespace

LandingTable::LandingTable(size_t slots) : slots_(slots), landings_(new Landing[slots]) {}

Landing* LandingTable::Post(char* data, size_t capacity, int32_t tag) {
  const uint64_t sequence = posted_.load(std::memory_order_relaxed);
  Landing& landing = landings_[sequence & (slots_ - 1)];
  landing.data = data;
  landing.capacity = capacity;
  landing.sequence = sequence;
  landing.tag = tag;
  landing.in_use = true;
  landing.landed.store(0, std::memory_order_relaxed);
  landing.message_bytes.store(kUnknownBytes, std::memory_order_relaxed);
  landing.done.store(false, std::memory_order_relaxed);
  landing.claim.store(ClaimWord(sequence), std::memory_order_release);
  posted_.store(sequence + 1, std::memory_order_seq_cst);
  return &landing;
}

ClaimResult LandingTable::Claim(const FrameHeader& chunk, Landing** out) {
  const uint64_t posted = posted_.load(std::memory_order_seq_cst);
  if (chunk.sequence >= posted) return ClaimResult::kNotPosted;
  if (posted - chunk.sequence > slots_) return ClaimResult::kBroken;
  Landing& landing = landings_[chunk.sequence & (slots_ - 1)];
  uint64_t word = landing.claim.load(std::memory_order_acquire);
  for (;;) {
    if ((word & ~kUnitMask) != ClaimWord(chunk.sequence)) return ClaimResult::kBroken;
    const uint64_t claimed = (word & kUnitMask) + Units(chunk.length);
    if (claimed > Units(chunk.message_bytes)) return ClaimResult::kBroken;
    const uint64_t units = claimed == Units(chunk.message_bytes) ? kAllUnits : claimed;
    if (landing.claim.compare_exchange_weak(word, ClaimWord(chunk.sequence) | units, std::memory_order_acq_rel)) break;
  }
  // From here on the landing can't complete without us, also if we name another message size than those who claimed the
  // rest: before we did, the rest was not all, and after it was all, nobody could. So its fields stand still.
  *out = &landing;
  uint64_t expected = kUnknownBytes;
  if (!landing.message_bytes.compare_exchange_strong(expected, chunk.message_bytes) &&
      expected != chunk.message_bytes) {
    return ClaimResult::kBroken;
  }
  return chunk.message_bytes > landing.capacity ? ClaimResult::kTooLarge : ClaimResult::kClaimed;
}

bool LandingTable::Landed(Landing* landing, const FrameHeader& chunk) {
  const uint64_t units = Units(chunk.length);
  const uint64_t before = landing->landed.fetch_add(units, std::memory_order_acq_rel);
  if (before + units != Units(chunk.message_bytes)) return false;
  landing->done.store(true, std::memory_order_release);
  return true;
}

}  // namespace tcpx
