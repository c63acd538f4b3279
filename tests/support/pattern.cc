#include "tests/support/pattern.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "tests/support/seed.h"

namespace tcpx {

Pattern::Pattern(uint64_t seed, size_t bytes_max) : seed_(seed), bytes_(bytes_max + kStarts) {
  Rng rng(seed);
  for (size_t at = 0; at < bytes_.size(); at += sizeof(uint64_t)) {
    const uint64_t word = rng.Next();
    std::memcpy(&bytes_[at], &word, std::min(sizeof(word), bytes_.size() - at));
  }
}

const char* Pattern::Bytes(uint64_t message) const { return bytes_.data() + Rng(seed_ ^ message).Next() % kStarts; }

std::string Pattern::Check(uint64_t message, const char* data, size_t bytes) const {
  const char* expected = Bytes(message);
  if (std::memcmp(data, expected, bytes) == 0) return "";
  size_t at = 0;
  while (data[at] == expected[at]) ++at;
  return absl::StrFormat("message %d: byte %d of %d is %02x instead of %02x", message, at, bytes,
                         static_cast<uint8_t>(data[at]), static_cast<uint8_t>(expected[at]));
}

GuardedBuffer::GuardedBuffer(size_t bytes_max, bool armed)
    : bytes_max_(bytes_max), bytes_(new char[bytes_max + 2 * kGuardBytes]) {
  if (armed) Arm(bytes_max);
}

void GuardedBuffer::Arm(size_t capacity) { FillGuard(bytes_.get(), capacity + 2 * kGuardBytes); }

std::string GuardedBuffer::Check(size_t bytes, size_t capacity) const {
  const size_t before = VerifyGuard(bytes_.get(), kGuardBytes);
  if (before != kNoDifference) return absl::StrFormat("%d bytes before the buffer were written", kGuardBytes - before);
  const size_t after = VerifyGuard(data() + bytes, capacity - bytes + kGuardBytes);
  if (after == kNoDifference) return "";
  return absl::StrFormat("byte %d after a message of %d bytes (receive of %d bytes) was written", after, bytes,
                         capacity);
}

}  // namespace tcpx
