// lane_rate.h: how fast a lane drains, and so how much it may hold.
//
// Purpose: a lane takes a chunk only while what it holds (unsent and unacknowledged) drains within milliseconds at its
//          own pace. So a slow flow holds little, and no message waits long for a chunk that went to it. Pure.
// Threads: one at a time. Units: bytes, nanoseconds, bytes per second. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "net_socket/send/tuning.h"

namespace tcpx {

class LaneRate {
 public:
  // `held_min` is what a lane may always hold: a chunk.
  explicit LaneRate(int64_t held_min) : held_min_(held_min) {}

  // At `now`: bytes given to the kernel so far, and how many of them are not acknowledged. `continuous`: the lane has
  // had data to send ever since the look before, however long ago that is (a chunk may take a slow flow 100 ms).
  void Sample(int64_t now_ns, uint64_t sent, int64_t held, bool continuous = false);
  // Another socket takes another path, about which nothing is known.
  void Restart() {
    rate_ = min_rtt_ns_ = 0;
    last_ns_ = 0;
  }
  void set_min_rtt_ns(int64_t min_rtt_ns) { min_rtt_ns_ = min_rtt_ns; }

  // 0 until known.
  int64_t bytes_per_second() const { return rate_; }
  // What the lane may hold before it takes another chunk, and how much of a chunk that is.
  int64_t held_max() const { return std::max(held_min_, Within(tuning::kDrainNs + 2 * min_rtt_ns_)); }
  int64_t chunk_max() const { return std::max(held_min_, Within(tuning::kChunkNs)); }
  // The least of a piloted lane, and so the last of a message.
  int64_t chunk_least() const {
    if (rate_ == 0) return std::min(tuning::kChunkUnknownBytes, held_min_);
    return std::min(std::max(Within(tuning::kChunkLeastNs), tuning::kChunkLeastBytes), held_min_);
  }
  // How much a lane may hold if `part` is its share of all bytes under way.
  int64_t held_max(int64_t part) const {
    return std::min({held_max(), part, std::max(part / 2, Within(tuning::kPartNs + 2 * min_rtt_ns_))});
  }
  // How long to wait before the next look when the lane holds `held` and may hold `bound`.
  int64_t RetryAfterNs(int64_t held, int64_t bound) const;

 private:
  int64_t Within(int64_t ns) const;
  void StartSpan(int64_t now_ns, uint64_t acked, bool busy);
  void EndSpan(int64_t now_ns, uint64_t acked, bool busy);

  const int64_t held_min_;
  int64_t rate_ = 0;
  int64_t min_rtt_ns_ = 0;
  // Acknowledgements come in lumps (a shaper lets up to 64 KiB through at once: 5 ms at 0.1 Gbit/s), so a span begins
  // and ends where a look saw one.
  int64_t span_ns_ = 0;
  uint64_t span_acked_ = 0;
  bool span_busy_ = false;  // no look since found the lane empty
  int64_t last_ns_ = 0;     // the latest look
  uint64_t last_acked_ = 0;
};

}  // namespace tcpx
