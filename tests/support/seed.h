// seed.h: where the numbers of seeded tests come from, and how much longer everything takes here.
//
// Purpose: TestSeed prints the seed that a run uses, so that a failure can be repeated with TCPX_TEST_SEED=N; LongRun
//          and ShortRun tell whether TCPX_TEST_LONG=1 or TCPX_TEST_SHORT=1 asks for another form than the usual one;
//          TimeScale stretches deadlines under sanitizers and in emulation.
// Threads: Rng belongs to one thread at a time; the functions may be called from any.
// Units:   TimeScale is a factor.
// Source:  Rng is SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
#pragma once

#include <cstdint>

namespace tcpx {

// TCPX_TEST_SEED, or a new one; the same for the whole process. Printed to stderr at the first call.
uint64_t TestSeed();
// True exactly when TCPX_TEST_LONG is 1.
bool LongRun();
// True exactly when TCPX_TEST_SHORT is 1: `tools/test --fast`, a first look.
bool ShortRun();
// TCPX_TEST_TIME_SCALE, else 1, or more in a build that a sanitizer slows down.
int TimeScale();
// How many times as long as on a quiet machine a wait may take before something counts as hung: where six tests share
// two CPUs a thread may get none for 40 s.
int Patience();

// Whether the address or the thread sanitizer looks on: it takes several times as long, and looks at each byte.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
// How often something is done that the configuration that ships does `usual` times: what a sanitizer finds it finds at
// the first few, and so does a first look.
inline int Repeats(int usual) { return kSanitized || ShortRun() ? (usual + 2) / 3 : usual; }

class Rng {
 public:
  explicit Rng(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  // In [low, high].
  uint64_t Between(uint64_t low, uint64_t high) { return low + Next() % (high - low + 1); }
  bool OneIn(uint64_t n) { return Next() % n == 0; }

 private:
  uint64_t state_;
};

}  // namespace tcpx
