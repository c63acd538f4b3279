// stats.h: medians and quartiles of small sets of numbers.
//
// Threads: any; pure.
// Errors:  none: of an empty set every answer is 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcpx {
namespace bench {

// Linear interpolation between closest ranks; `fraction` is in [0, 1].
double Quantile(std::vector<double> values, double fraction);

struct Summary {
  size_t count = 0;
  double median = 0;
  double lower_quartile = 0;
  double upper_quartile = 0;
};
Summary Summarize(const std::vector<double>& values);

// Nearest rank, as latencies are quoted: the smallest value that `fraction` of all values do not exceed. Reorders
// `values`.
int64_t NearestRank(std::vector<int64_t>* values, double fraction);

}  // namespace bench
}  // namespace tcpx
