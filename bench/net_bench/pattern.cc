#include "bench/net_bench/pattern.h"

#include <string.h>

namespace tcpx {
namespace bench {
namespace {

// Odd, with about half of its bits set: successive words differ in most bytes.
constexpr uint64_t kStep = 0x9e3779b97f4a7c15;

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
uint64_t Mix(uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

uint64_t FirstWord(const MessageIdentity& identity) {
  const uint64_t place = (uint64_t{identity.connection} << 32) | identity.sender;
  return Mix(Mix(Mix(identity.seed + kStep) ^ place) + identity.message * kStep);
}

}  // namespace

void FillPattern(const MessageIdentity& identity, uint8_t* data, size_t bytes) {
  uint64_t word = FirstWord(identity);
  size_t at = 0;
  for (; at + sizeof(word) <= bytes; at += sizeof(word), word += kStep) memcpy(data + at, &word, sizeof(word));
  memcpy(data + at, &word, bytes - at);
}

uint8_t PatternByte(const MessageIdentity& identity, size_t offset) {
  const uint64_t word = FirstWord(identity) + kStep * (offset / sizeof(uint64_t));
  uint8_t in_memory_order[sizeof(word)];
  memcpy(in_memory_order, &word, sizeof(word));
  return in_memory_order[offset % sizeof(word)];
}

size_t VerifyPattern(const MessageIdentity& identity, const uint8_t* data, size_t bytes) {
  uint64_t word = FirstWord(identity);
  size_t at = 0;
  for (; at + sizeof(word) <= bytes; at += sizeof(word), word += kStep) {
    uint64_t got;
    memcpy(&got, data + at, sizeof(got));
    if (got != word) break;
  }
  for (; at < bytes; ++at) {
    if (data[at] != PatternByte(identity, at)) return at;
  }
  return kNoDifference;
}

}  // namespace bench
}  // namespace tcpx
