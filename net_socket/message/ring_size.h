// ring_size.h: how large a ring is that is indexed by the low bits of a count.
//
// Units:   entries.
#pragma once

#include <cstddef>

namespace tcpx {

constexpr bool IsRingSize(size_t size) { return size != 0 && (size & (size - 1)) == 0; }

// The least power of two with room for `entries`.
constexpr size_t RingSize(int entries) {
  size_t size = 1;
  while (size < static_cast<size_t>(entries)) size *= 2;
  return size;
}

}  // namespace tcpx
