#include "bench/net_bench/stats.h"

#include <algorithm>
#include <cmath>

namespace tcpx {
namespace bench {

double Quantile(std::vector<double> values, double fraction) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = fraction * static_cast<double>(values.size() - 1);
  const size_t below = static_cast<size_t>(position);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (position - static_cast<double>(below));
}

Summary Summarize(const std::vector<double>& values) {
  Summary summary;
  summary.count = values.size();
  summary.median = Quantile(values, 0.5);
  summary.lower_quartile = Quantile(values, 0.25);
  summary.upper_quartile = Quantile(values, 0.75);
  return summary;
}

int64_t NearestRank(std::vector<int64_t>* values, double fraction) {
  if (values->empty()) return 0;
  const double rank = std::ceil(fraction * static_cast<double>(values->size()));
  const size_t index = rank < 1 ? 0 : std::min(values->size(), static_cast<size_t>(rank)) - 1;
  std::nth_element(values->begin(), values->begin() + static_cast<std::ptrdiff_t>(index), values->end());
  return (*values)[index];
}

}  // namespace bench
}  // namespace tcpx
