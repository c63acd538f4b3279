// pace.h: when the statistics look, and when they write.
//
// Purpose: a look comes once a second, or less often where looks would cost more than a third of a percent of a CPU,
//          but every 10 s at least. Only the look itself counts: else a reader that asks the socket often would slow
//          looks down. Files are written every 10 s, of the latest look, however long that is ago.
// Threads: one at a time.
// Units:   nanoseconds of MonotonicNanos; 0 is due. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/clock.h"

namespace tcpx {

class StatsPace {
 public:
  // From one look to the next.
  static constexpr int64_t kLookEveryNs = kSecond;
  // And at the most, where looks are costly.
  static constexpr int64_t kLookEveryMaxNs = 10 * kSecond;
  // From one time that the file is written to the next.
  static constexpr int64_t kWriteEveryNs = 10 * kSecond;
  // A look's cost, times this, is the least time until the next one.
  static constexpr int64_t kCostShare = 300;

  bool LookDue(int64_t now_ns) const { return now_ns >= look_ns_; }
  bool WriteDue(int64_t now_ns) const { return now_ns >= write_ns_; }
  // `cost_ns`: CPU.
  void Looked(int64_t now_ns, int64_t cost_ns) {
    look_ns_ = now_ns + std::clamp(cost_ns * kCostShare, kLookEveryNs, kLookEveryMaxNs);
  }
  // The first file is of before the first connection: the second comes soon.
  void Wrote(int64_t now_ns) {
    write_ns_ = now_ns + (first_ ? kLookEveryNs : kWriteEveryNs);
    first_ = false;
  }
  int64_t next_ns() const { return std::min(look_ns_, write_ns_); }

 private:
  int64_t look_ns_ = 0;
  int64_t write_ns_ = 0;
  bool first_ = true;
};

}  // namespace tcpx
