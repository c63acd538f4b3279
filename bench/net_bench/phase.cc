#include "bench/net_bench/phase.h"

#include <utility>
#include <vector>

#include "bench/net_bench/stats.h"
#include "common/clock.h"

namespace tcpx {
namespace bench {
namespace {

// Short compared with a sample: 0.1 ms near, 0.8 ms far. The median chunk counts: a driver that lost its CPU for a
// while in the middle must not look far away.
constexpr uint32_t kChunks = 20;
constexpr uint32_t kRoundsPerChunk = 100;
// Rounds before the clock starts: the workers do not arrive at the same instant.
constexpr uint32_t kSettlingRounds = 50;

void Serve(SharedPage* page, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i) {
    page->ball.store(2 * i + 1, std::memory_order_release);
    while (page->ball.load(std::memory_order_acquire) != 2 * i + 2) {
    }
  }
}

void Return(SharedPage* page, uint32_t rounds) {
  for (uint32_t i = 0; i < rounds; ++i) {
    while (page->ball.load(std::memory_order_acquire) != 2 * i + 1) {
    }
    page->ball.store(2 * i + 2, std::memory_order_release);
  }
}

}  // namespace

const char* PhaseName(Phase phase) {
  switch (phase) {
    case Phase::kNear:
      return "near";
    case Phase::kBetween:
      return "between";
    case Phase::kFar:
      return "far";
    case Phase::kUnchecked:
      return "unchecked";
    case Phase::kMixed:
      return "mixed";
  }
  return "?";
}

Phase ClassifyBounce(double nanoseconds) {
  if (nanoseconds < kNearBelowNs) return Phase::kNear;
  return nanoseconds > kFarAboveNs ? Phase::kFar : Phase::kBetween;
}

Phase Combine(Phase before, Phase after) { return before == after ? before : Phase::kMixed; }

double ProbeBounceNs(SharedPage* page, int rank) {
  if (rank != 0) {
    Return(page, kSettlingRounds);
    for (uint32_t i = 0; i < kChunks; ++i) Return(page, kRoundsPerChunk);
    return 0;
  }
  Serve(page, kSettlingRounds);
  std::vector<double> chunks;
  for (uint32_t i = 0; i < kChunks; ++i) {
    const int64_t start = MonotonicNanos();
    Serve(page, kRoundsPerChunk);
    chunks.push_back(static_cast<double>(MonotonicNanos() - start) / (2.0 * kRoundsPerChunk));
  }
  return Quantile(std::move(chunks), 0.5);
}

}  // namespace bench
}  // namespace tcpx
