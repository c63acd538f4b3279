#include "net_socket/message/landing.h"

#include <algorithm>

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

LandingTable::LandingTable(size_t slots, bool match_tags)
    : slots_(slots), match_tags_(match_tags), landings_(new Landing[slots]) {}

bool LandingTable::HasRoom(int count) const {
  const uint64_t next = posted_.load(std::memory_order_relaxed);
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    if (landings_[(next + i) & (slots_ - 1)].in_use) return false;
  }
  return true;
}

Landing* LandingTable::Post(char* data, size_t capacity, int32_t tag, TransferEvents* events, LandingWay way) {
  const uint64_t sequence = posted_.load(std::memory_order_relaxed);
  Landing& landing = landings_[sequence & (slots_ - 1)];
  landing.data = data;
  landing.way = way;
  landing.capacity = capacity;
  landing.sequence = sequence;
  landing.tag = tag;
  landing.events = events;
  landing.in_use = true;
  landing.landed.store(0, std::memory_order_relaxed);
  landing.message_bytes.store(kUnknownBytes, std::memory_order_relaxed);
  landing.done.store(false, std::memory_order_relaxed);
  landing.claim.store(ClaimWord(sequence), std::memory_order_release);
  posted_.store(sequence + 1, std::memory_order_seq_cst);
  return &landing;
}

Flight LandingTable::FlightNow() const {
  Flight flight;
  const uint64_t end = posted();
  for (uint64_t sequence = end - std::min<uint64_t>(end, slots_); sequence < end; ++sequence) {
    const Landing& landing = landings_[sequence & (slots_ - 1)];
    if (landing.sequence != sequence || landing.done.load(std::memory_order_relaxed)) continue;
    if (flight.messages++ > 0) continue;
    const uint64_t message_bytes = landing.message_bytes.load(std::memory_order_relaxed);
    flight.sequence = sequence;
    flight.bytes_done = landing.landed.load(std::memory_order_relaxed);
    flight.total_known = message_bytes != kUnknownBytes;
    flight.bytes_total = flight.total_known ? message_bytes : uint64_t{landing.capacity};
  }
  return flight;
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
  if (match_tags_ && chunk.tag != landing.tag) return ClaimResult::kBroken;
  return chunk.message_bytes > landing.capacity ? ClaimResult::kTooLarge : ClaimResult::kClaimed;
}

bool LandingTable::Landed(Landing* landing, const FrameHeader& chunk) {
  return Landed(landing, Units(chunk.length), chunk.message_bytes);
}

bool LandingTable::Landed(Landing* landing, uint64_t units, uint64_t message_bytes) {
  const uint64_t before = landing->landed.fetch_add(units, std::memory_order_acq_rel);
  if (before + units != Units(message_bytes)) return false;
  landing->done.store(true, std::memory_order_release);
  return true;
}

}  // namespace tcpx
