// chance.h: which segments a path loses or holds back, and the random numbers that decide it.
//
// Purpose: the same seed gives the same losses for the same traffic.
// Threads: one. Units: shares from 0 to 1; lengths in segments. Errors: none.
// Source:  Gilbert, Capacity of a Burst-Noise Channel (1960): two states, and in the bad one everything is lost.
#pragma once

#include <cstdint>

namespace tcpx {
namespace wire {

// SplitMix64 (Steele, Lea, Flood, 2014): the next number of a sequence that the seed fixes.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // From 0, included, to 1, not included.
  double Share() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

// Loses `share` of all segments in runs of `run` on average; 1: each segment for itself.
class LossModel {
 public:
  bool Lose(double share, double run, Random* random);

 private:
  bool bad_ = false;
};

}  // namespace wire
}  // namespace tcpx
