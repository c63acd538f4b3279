// busy_lanes.h: how many bulk lanes of the process have been busy lately, and what each of them may hold unsent.
//
// Purpose: a lane holds what drains within milliseconds at its own pace (lane_rates.h), so lanes that are busy together
//          share a link by what they measure. But a pace may be of long ago, when the lane was alone; where thousands
//          of lanes wake at once, memory is shared by how many they are. What is in flight is never bounded by this.
// Threads: any. Units: bytes, nanoseconds of MonotonicNanos. Errors: none.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "net_socket/send/tuning.h"

namespace tcpx {

class BusyLanes {
 public:
  // A lane pulls at `now_ns`. `*span` is the lane's own, 0 at first.
  void Note(int64_t now_ns, uint32_t* span) {
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
  int Count(int64_t now_ns) const {
    const uint32_t now = SpanOf(now_ns);
    return std::max(CountIn(latest_.load(std::memory_order_relaxed), now),
                    CountIn(before_.load(std::memory_order_relaxed), now));
  }

  // A connection has brought another `bytes`; returns what all have.
  uint64_t Brought(uint64_t bytes) { return brought_.fetch_add(bytes, std::memory_order_relaxed) + bytes; }

  // What each of `lanes` busy ones may hold unsent: -1, no bound of ours, for up to 64; else a part of 256 MiB, 64 KiB
  // at the least.
  static int64_t UnsentMax(int lanes) {
    constexpr int64_t kSharedBytes = tuning::kLanesUnbound << 22;
    return lanes <= tuning::kLanesUnbound ? -1 : std::max(kSharedBytes / lanes, tuning::kUnsentBytesMin);
  }

 private:
  static uint32_t SpanOf(int64_t now_ns) { return static_cast<uint32_t>(now_ns / tuning::kBusySpanNs) + 1; }
  static int CountIn(uint64_t word, uint32_t now) {
    return now - static_cast<uint32_t>(word >> 32) <= 1 ? static_cast<int>(word & 0xffffffff) : 0;
  }

  // A span, in the upper half, and how many lanes pulled in it.
  std::atomic<uint64_t> latest_{0};
  std::atomic<uint64_t> before_{0};
  std::atomic<uint64_t> brought_{0};
};

}  // namespace tcpx
