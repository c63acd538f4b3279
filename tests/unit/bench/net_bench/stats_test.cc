#include "bench/net_bench/stats.h"

#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

TEST(Quantile, InterpolatesAndSorts) {
  EXPECT_DOUBLE_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_DOUBLE_EQ(Quantile({4, 1, 3, 2}, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile({10, 20}, 0), 10);
  EXPECT_DOUBLE_EQ(Quantile({10, 20}, 1), 20);
  EXPECT_DOUBLE_EQ(Quantile({7}, 0.99), 7);
  EXPECT_DOUBLE_EQ(Quantile({}, 0.5), 0);
}

TEST(Summarize, GivesQuartiles) {
  const Summary summary = Summarize({5, 1, 4, 2, 3});
  EXPECT_EQ(summary.count, 5u);
  EXPECT_DOUBLE_EQ(summary.lower_quartile, 2);
  EXPECT_DOUBLE_EQ(summary.median, 3);
  EXPECT_DOUBLE_EQ(summary.upper_quartile, 4);
  EXPECT_EQ(Summarize({}).count, 0u);
}

TEST(NearestRank, IsOneOfTheValues) {
  std::vector<int64_t> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  EXPECT_EQ(NearestRank(&values, 0.5), 50);
  EXPECT_EQ(NearestRank(&values, 0.99), 99);
  EXPECT_EQ(NearestRank(&values, 1), 100);
  EXPECT_EQ(NearestRank(&values, 0), 1);
  std::vector<int64_t> none;
  EXPECT_EQ(NearestRank(&none, 0.5), 0);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
