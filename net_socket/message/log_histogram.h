// log_histogram.h: how often values of each power of two came.
//
// Threads: one adds, any reads.
// Units:   the caller's. Bucket i counts values above 2^(i-1) and up to 2^i; the first one 0 and 1, the last one all
//          that is larger.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "net_socket/message/lane_counts.h"

namespace tcpx {

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
