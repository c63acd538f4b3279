#include "net_socket/send/busy_lanes.h"

#include <algorithm>

namespace tcpx {
namespace {

// The kernel lets a send buffer grow to 4 MiB (tcp_wmem): up to so many lanes hold 256 MiB at the most by themselves.
constexpr int64_t kLanesUnbound = 64;
constexpr int64_t kSharedUnsentBytes = kLanesUnbound << 22;
// Of 4000 lanes at once each has less than 25 Mbit/s of a link of 100 Gbit/s: 20 ms of that.
constexpr int64_t kUnsentBytesMin = 64 << 10;

}  // namespace

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
  return lanes <= kLanesUnbound ? -1 : std::max(kSharedUnsentBytes / lanes, kUnsentBytesMin);
}

}  // namespace tcpx
