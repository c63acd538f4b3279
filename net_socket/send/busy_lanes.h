// busy_lanes.h: how many bulk lanes of the process have been busy lately, and what each of them may hold unsent.
//
// Purpose: a lane holds what drains within milliseconds at its own pace (lane_rate.h), so lanes that are busy together
//          share a link by what they measure. But a pace may be of long ago, when the lane was alone; where thousands
//          of lanes wake at once, memory is shared by how many they are. What is in flight is never bounded by this.
// Threads: any.
// Units:   bytes, nanoseconds of MonotonicNanos. Errors: none.
#pragma once

#include <atomic>
#include <cstdint>

#include "net_socket/send/tuning.h"

namespace tcpx {

class BusyLanes {
 public:
  // A lane pulls at `now_ns`. `*span` is the lane's own, 0 at first.
  void Note(int64_t now_ns, uint32_t* span);
  int Count(int64_t now_ns) const;

  // A connection has brought another `bytes`; returns what all have.
  uint64_t Brought(uint64_t bytes) { return brought_.fetch_add(bytes, std::memory_order_relaxed) + bytes; }

  // What each of `lanes` busy ones may hold unsent: -1, no bound of ours, for up to 64; else a part of 256 MiB, 64 KiB
  // at the least.
  static int64_t UnsentMax(int lanes);

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
