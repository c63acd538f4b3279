#include "tests/support/seed.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace tcpx {
namespace {

uint64_t ChooseSeed() {
  const char* text = std::getenv("TCPX_TEST_SEED");
  const uint64_t seed = text != nullptr ? std::strtoull(text, nullptr, 10) : std::random_device()();
  std::fprintf(stderr, "TCPX_TEST_SEED=%llu repeats this run\n", static_cast<unsigned long long>(seed));
  return seed;
}

bool IsOne(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && std::strcmp(text, "1") == 0;
}

}  // namespace

uint64_t TestSeed() {
  static const uint64_t seed = ChooseSeed();
  return seed;
}

bool LongRun() { return IsOne("TCPX_TEST_LONG"); }

bool ShortRun() { return IsOne("TCPX_TEST_SHORT"); }

int TimeScale() {
  static const char* const text = std::getenv("TCPX_TEST_TIME_SCALE");
  if (text != nullptr) return std::max(1, std::atoi(text));
#if defined(__SANITIZE_THREAD__)
  return 8;
#elif defined(__SANITIZE_ADDRESS__)
  return 4;
#else
  return 1;
#endif
}

int Patience() { return std::max(3, TimeScale()); }

uint64_t Rng::Next() {
  state_ += 0x9e3779b97f4a7c15;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace tcpx
