// counts.h: what is counted where it happens, for those that watch.
//
// Threads: one writes, any reads. Values of different counts may be of different moments.
// Units:   the counter's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "net_socket/message/flight.h"

namespace tcpx {

using Counter = Relaxed<uint64_t>;

// What a lane has moved so far: bytes, and numbers of things.
template <typename Count>
struct LaneCountsOf {
  Count bytes{};        // of the stream, so with headers and padding
  Count chunks{};       // whole ones
  Count calls{};        // that moved something
  Count short_calls{};  // of them, sends that the kernel took only a part of
  Count zero_copy{};    // chunks that were sent without a copy
  Count copied{};       // of them, that the kernel copied after all
};

// LaneCounts at one moment, or the sum of several.
using LaneSums = LaneCountsOf<uint64_t>;

struct LaneCounts : LaneCountsOf<Counter> {
  LaneSums Now() const {
    return {bytes.get(), chunks.get(), calls.get(), short_calls.get(), zero_copy.get(), copied.get()};
  }
};

// How often values of each power of two came. Bucket i counts values above 2^(i-1) and up to 2^i; the first one 0 and
// 1, the last one all that is larger.
inline constexpr int kLogBuckets = 42;

constexpr int LogBucket(uint64_t value) {
  const int bucket = value <= 1 ? 0 : 64 - __builtin_clzll(value - 1);
  return bucket < kLogBuckets ? bucket : kLogBuckets - 1;
}

// A plain copy.
struct LogHistogramValues {
  std::array<uint64_t, kLogBuckets> buckets{};
  uint64_t sum = 0;

  uint64_t count() const { return std::accumulate(buckets.begin(), buckets.end(), uint64_t{0}); }
  // The upper bound of the bucket in which the value lies that `share` (0 to 1) of all are no larger than; 0: none
  // came.
  uint64_t Quantile(double share) const {
    const double wanted = share * static_cast<double>(count());
    uint64_t seen = 0;
    for (int i = 0; i < kLogBuckets; ++i) {
      seen += buckets[static_cast<size_t>(i)];
      if (seen > 0 && static_cast<double>(seen) >= wanted) return uint64_t{1} << i;
    }
    return 0;
  }
  void Add(const LogHistogramValues& other) {
    for (size_t i = 0; i < buckets.size(); ++i) buckets[i] += other.buckets[i];
    sum += other.sum;
  }
};

class LogHistogram {
 public:
  void Add(uint64_t value) {
    buckets_[static_cast<size_t>(LogBucket(value))].Add();
    sum_.Add(value);
  }
  LogHistogramValues Read() const {
    LogHistogramValues values;
    for (size_t i = 0; i < buckets_.size(); ++i) values.buckets[i] = buckets_[i].get();
    values.sum = sum_.get();
    return values;
  }

 private:
  std::array<Counter, kLogBuckets> buckets_;
  Counter sum_;
};

}  // namespace tcpx
