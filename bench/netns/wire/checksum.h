// checksum.h: the Internet's checksum (RFC 1071) and the pseudo headers of TCP and UDP.
//
// Threads: any; pure.
// Units:   bytes; sums are of 16-bit words in network byte order. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcpx {
namespace wire {

// Unfolded sum of `bytes` bytes, added to `sum`; an odd last byte counts as the high half of a word.
uint64_t AddWords(const uint8_t* data, size_t bytes, uint64_t sum = 0);
// Carries added in until 16 bits remain; not inverted.
uint16_t Fold(uint64_t sum);
// What a header that covers `data`, with its checksum field zero, bears.
inline uint16_t Checksum(const uint8_t* data, size_t bytes) {
  return static_cast<uint16_t>(~Fold(AddWords(data, bytes)));
}
// Sum of the pseudo header (RFC 9293, 3.1; RFC 8200, 8.1): two addresses of `address_bytes` each, next to each other.
uint64_t PseudoHeader(const uint8_t* addresses, size_t address_bytes, uint8_t protocol, uint32_t transport_bytes);

inline uint16_t Read16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
inline uint32_t Read32(const uint8_t* at) { return static_cast<uint32_t>(Read16(at)) << 16 | Read16(at + 2); }
inline void Write16(uint8_t* at, uint16_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}
inline void Write32(uint8_t* at, uint32_t value) {
  Write16(at, static_cast<uint16_t>(value >> 16));
  Write16(at + 2, static_cast<uint16_t>(value));
}

}  // namespace wire
}  // namespace tcpx
