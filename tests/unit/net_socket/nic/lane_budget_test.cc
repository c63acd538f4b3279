// What the lanes that are open leave for the next connection.
#include "net_socket/nic/lane_budget.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tcpx {
namespace {

TEST(LaneBudgetTest, TheShareOfWhatIsLeft) {
  struct Row {
    int wanted, least;
    int64_t left;
    int share;
  };
  const Row rows[] = {
      {8, 1, 8192, 8},   {8, 1, 1024, 8}, {8, 1, 1023, 7}, {8, 1, 128, 1}, {8, 1, 0, 1},    {8, 1, -5000, 1},
      {64, 1, 4096, 32}, {8, 4, 0, 4},    {2, 4, 0, 2},    {0, 0, 0, 0},   {0, 1, 8192, 0}, {1, 0, 0, 1},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.share, LaneBudget::Share(row.wanted, row.least, row.left)) << row.wanted << " of " << row.left;
  }
}

TEST(LaneBudgetTest, AQuarterOfTheDescriptorsAndNoMoreThanItsOwnBound) {
  EXPECT_EQ(256, LaneBudget(1024).left());
  EXPECT_EQ(8192, LaneBudget(1 << 20).left());
  EXPECT_EQ(8192, LaneBudget(-1).left());
}

TEST(LaneBudgetTest, WhatIsTakenComesBack) {
  LaneBudget budget(1 << 20);
  {
    const auto one = budget.Take(8);
    const auto other = budget.Take(5);
    EXPECT_EQ(8192 - 13, budget.left());
  }
  EXPECT_EQ(8192, budget.left());
}

// Four thousand connections of 24 bulk lanes each: the first two hundred have them all, the first five hundred two at
// the least, nobody has none, and the whole stays within the bound and a lane each.
TEST(LaneBudgetTest, FourThousandConnections) {
  LaneBudget budget(1 << 20);
  std::vector<std::shared_ptr<const void>> open;
  int64_t lanes = 0;
  int full = 0;
  for (int i = 0; i < 4000; ++i) {
    const int share = LaneBudget::Share(24, 1, budget.left());
    ASSERT_GE(share, i < 500 ? 2 : 1);
    open.push_back(budget.Take(share));
    lanes += share;
    full += share == 24 ? 1 : 0;
  }
  EXPECT_GE(full, 200);
  EXPECT_LE(lanes, LaneBudget::kLanesMax + 4000);
}

TEST(LaneBudgetTest, FewLanesMayBeOpenedWhereManyAreBusy) {
  EXPECT_EQ(32, LaneBudget::MayOpen(8192, 0));
  EXPECT_EQ(8, LaneBudget::MayOpen(8192, 24));
  EXPECT_EQ(0, LaneBudget::MayOpen(8192, 1000));
  EXPECT_EQ(0, LaneBudget::MayOpen(0, 0));
  EXPECT_EQ(0, LaneBudget::MayOpen(-5, 0));
}

// One that was alone may have found 32, which the other connections do not all need.
TEST(LaneBudgetTest, WhatWasFoundIsBoundedByHowManyAreBusy) {
  EXPECT_EQ(32, LaneBudget::Remembered(32, 4, 8192, 0));
  EXPECT_EQ(8, LaneBudget::Remembered(32, 4, 8192, 24));
  EXPECT_EQ(4, LaneBudget::Remembered(32, 4, 8192, 1000));
  EXPECT_EQ(2, LaneBudget::Remembered(2, 4, 8192, 1000)) << "fewer than usual may do";
  EXPECT_EQ(1, LaneBudget::Remembered(32, 4, 0, 0));
}

TEST(OpenLanesTest, ALaneCountsOnceAndUntilItsConnectionGoes) {
  LaneBudget budget(400);
  {
    OpenLanes lanes(&budget);
    lanes.Open(1);
    lanes.Open(7);
    lanes.Open(7);
    EXPECT_EQ(98, budget.left());
  }
  EXPECT_EQ(100, budget.left());
}

}  // namespace
}  // namespace tcpx
