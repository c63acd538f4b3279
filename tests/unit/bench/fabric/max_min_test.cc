// Shares of links, against ones that a hand has computed and against the rules of max-min fairness.
#include "bench/fabric/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace tcpx {
namespace fabric {
namespace {

Flow Over(const std::vector<int>& links, double weight = 1, double cap = kUnlimited) {
  Flow flow;
  for (int link : links) flow.Cross(link);
  flow.weight = weight;
  flow.cap = cap;
  return flow;
}

TEST(MaxMinTest, WhatTheBottleneckLeavesGoesToTheOthers) {
  MaxMin links;
  const int narrow = links.AddLink(10), wide = links.AddLink(100);
  std::vector<Flow> flows = {Over({narrow, wide}), Over({narrow}), Over({wide}), Over({wide}, 2), Over({wide}, 1, 3)};
  links.Solve(&flows);
  EXPECT_DOUBLE_EQ(5, flows[0].rate);
  EXPECT_DOUBLE_EQ(5, flows[1].rate);
  EXPECT_DOUBLE_EQ((100.0 - 5 - 3) / 3, flows[2].rate);
  EXPECT_DOUBLE_EQ((100.0 - 5 - 3) * 2 / 3, flows[3].rate);
  EXPECT_DOUBLE_EQ(3, flows[4].rate);
  EXPECT_EQ(narrow, flows[0].bottleneck);
  EXPECT_EQ(wide, flows[2].bottleneck);
  EXPECT_EQ(-1, flows[4].bottleneck);
}

TEST(MaxMinTest, OtherCapacitiesNeedNoNewFlows) {
  MaxMin links, other;
  for (double capacity : {10, 100, 20}) (void)links.AddLink(capacity);
  for (double capacity : {40, 30, 20}) (void)other.AddLink(capacity);
  std::vector<Flow> flows = {Over({0, 1}), Over({0, 2}, 3), Over({1, 2}), Over({1}, 2, 25)}, same = flows;
  links.Solve(&flows);
  for (int link = 0; link < 3; ++link) links.SetCapacity(link, other.capacity(link));
  links.SolveAgain(&flows);
  other.Solve(&same);
  for (size_t i = 0; i < flows.size(); ++i) {
    EXPECT_EQ(same[i].rate, flows[i].rate);
    EXPECT_EQ(same[i].bottleneck, flows[i].bottleneck);
  }
  for (int link = 0; link < 3; ++link) EXPECT_EQ(other.held(link), links.held(link));
}

// Each flow has its cap, or crosses a full link on which no other flow has more for its weight.
TEST(MaxMinTest, NoFlowCouldHaveMore) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::minstd_rand random(seed);
    MaxMin links;
    for (int i = 0; i < 12; ++i) links.AddLink(1 + random() % 100);
    std::vector<Flow> flows;
    for (int i = 0; i < 60; ++i) {
      const int first = static_cast<int>(random() % 12);
      flows.push_back(Over({first, (first + 1 + static_cast<int>(random() % 11)) % 12}, 0.5 + 0.1 * (random() % 10),
                           random() % 3 == 0 ? 0.1 + random() % 8 : kUnlimited));
    }
    links.Solve(&flows);
    std::vector<double> used(12), most(12);
    for (const Flow& flow : flows) {
      for (int i = 0; i < flow.count; ++i) {
        const size_t link = static_cast<size_t>(flow.links[static_cast<size_t>(i)]);
        used[link] += flow.rate;
        most[link] = std::max(most[link], flow.rate / flow.weight);
      }
    }
    for (size_t i = 0; i < used.size(); ++i) EXPECT_LE(used[i], links.capacity(static_cast<int>(i)) * (1 + 1e-9));
    for (const Flow& flow : flows) {
      if (flow.bottleneck < 0) {
        EXPECT_DOUBLE_EQ(flow.cap, flow.rate);
        continue;
      }
      const size_t link = static_cast<size_t>(flow.bottleneck);
      EXPECT_NEAR(links.capacity(flow.bottleneck), used[link], 1e-6);
      EXPECT_NEAR(most[link], flow.rate / flow.weight, 1e-6);
      EXPECT_LE(flow.rate, flow.cap * (1 + 1e-9));
    }
  }
}

}  // namespace
}  // namespace fabric
}  // namespace tcpx
