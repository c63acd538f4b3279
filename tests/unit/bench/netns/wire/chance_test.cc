#include "bench/netns/wire/chance.h"

#include "gtest/gtest.h"

namespace tcpx {
namespace wire {
namespace {

struct Losses {
  double share = 0;
  double run = 0;  // average length
};

Losses Measure(double share, double run) {
  constexpr int kSegments = 1000000;
  Random random(1);
  LossModel model;
  int lost = 0;
  int runs = 0;
  bool before = false;
  for (int i = 0; i < kSegments; ++i) {
    const bool now = model.Lose(share, run, &random);
    lost += now;
    runs += now && !before;
    before = now;
  }
  return {static_cast<double>(lost) / kSegments, runs == 0 ? 0 : static_cast<double>(lost) / runs};
}

TEST(Random, SameSeedSameNumbers) {
  Random a(5);
  Random b(5);
  Random c(6);
  EXPECT_EQ(a.Next(), b.Next());
  EXPECT_NE(a.Next(), c.Next());
}

TEST(LossModel, NoneAndAll) {
  EXPECT_EQ(Measure(0, 1).share, 0);
  EXPECT_EQ(Measure(1, 1).share, 1);
  EXPECT_EQ(Measure(1, 8).share, 1);
}

TEST(LossModel, SingleOnes) {
  const Losses losses = Measure(0.01, 1);
  EXPECT_NEAR(losses.share, 0.01, 0.001);
  EXPECT_NEAR(losses.run, 1.01, 0.05);
}

TEST(LossModel, InRuns) {
  const Losses losses = Measure(0.01, 8);
  EXPECT_NEAR(losses.share, 0.01, 0.002);
  EXPECT_NEAR(losses.run, 8, 0.8);
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
