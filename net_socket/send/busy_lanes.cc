#include "net_socket/send/busy_lanes.h"

#include <algorithm>

namespace tcpx {

void BusyLanes::Note(int64_t now_ns, uint32_t* span) {
  const uint32_t now = SpanOf(now_ns);
  if (*span == now) return;
  *span = now;
  uint64_t word = latest_.load(std::memory_order_relaxed);
  uint64_t next = 0;
  do {
    const uint32_t of_word = static_cast<uint32_t>(word >> 32);
    if (static_cast<int32_t>(now - of_word) < 0) return;  // Another thread's clock reading is later.
    next = of_word == now ? word + 1 : uint64_t{now} << 32 | 1;
  } while (!latest_.compare_exchange_weak(word, next, std::memory_order_relaxed));
  if (static_cast<uint32_t>(word >> 32) != now) before_.store(word, std::memory_order_relaxed);
}

int BusyLanes::Count(int64_t now_ns) const {
  const uint32_t now = SpanOf(now_ns);
  return std::max(CountIn(latest_.load(std::memory_order_relaxed), now),
                  CountIn(before_.load(std::memory_order_relaxed), now));
}

int64_t BusyLanes::UnsentMax(int lanes) {
  constexpr int64_t kSharedBytes = tuning::kLanesUnbound << 22;
  return lanes <= tuning::kLanesUnbound ? -1 : std::max(kSharedBytes / lanes, tuning::kUnsentBytesMin);
}

}  // namespace tcpx
