// draw.h: random numbers by what they are for, so that one decision more changes no other draw.
//
// Threads: any; pure. Errors: none.
// Source:  the finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, 2014), and the sum of twelve for a normal draw.
#pragma once

#include <cstdint>

namespace tcpx {
namespace fabric {

inline uint64_t Mix(uint64_t word) {
  word += 0x9e3779b97f4a7c15u;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9u;
  word = (word ^ (word >> 27)) * 0x94d049bb133111ebu;
  return word ^ (word >> 31);
}

inline uint64_t Draw(uint64_t seed, uint64_t a, uint64_t b) { return Mix(Mix(Mix(seed) ^ a) ^ b); }

// 0 to 1.
inline double Part(uint64_t draw) { return static_cast<double>(draw >> 11) * 0x1p-53; }

// Mean 0, standard deviation 1.
inline double Normal(uint64_t seed, uint64_t a, uint64_t b) {
  double sum = -6;
  for (uint64_t i = 0; i < 3; ++i) {
    uint64_t word = Draw(seed + i, a, b);
    for (int part = 0; part < 4; ++part, word >>= 16) sum += static_cast<double>(word & 0xffff) / 65536;
  }
  return sum;
}

}  // namespace fabric
}  // namespace tcpx
