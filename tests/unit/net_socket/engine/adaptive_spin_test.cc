#include <gtest/gtest.h>

#include "net_socket/engine/progress_pool.h"

namespace tcpx {
namespace {

constexpr int64_t kMax = 48000;

int64_t After(AdaptiveSpin* spin, int gaps, int64_t gap_ns) {
  for (int i = 0; i < gaps; ++i) spin->WorkAfter(gap_ns);
  return spin->limit_ns();
}

TEST(AdaptiveSpinTest, StaysLongWhereItBridgesTheGaps) {
  AdaptiveSpin spin(kMax);
  EXPECT_EQ(kMax, spin.limit_ns());
  EXPECT_EQ(kMax, After(&spin, 1000, kMax)) << "a gap as long as the spin";
  EXPECT_EQ(kMax, After(&spin, 1000, 10));
}

TEST(AdaptiveSpinTest, ShrinksWhereGapsAreLongerAndRecovers) {
  AdaptiveSpin spin(kMax);
  EXPECT_EQ(kMax / 2, After(&spin, 1, kMax + 1));
  EXPECT_EQ(kMax / 16, After(&spin, 1000, 1000000));
  EXPECT_EQ(kMax / 8, After(&spin, 1, kMax)) << "sleeping hides gaps that a longer spin would bridge";
  EXPECT_EQ(kMax, After(&spin, 10, kMax));
}

TEST(AdaptiveSpinTest, ZeroNeverSpins) {
  AdaptiveSpin spin(0);
  EXPECT_EQ(0, After(&spin, 100, 0));
  EXPECT_EQ(0, After(&spin, 100, 5));
}

}  // namespace
}  // namespace tcpx
