// Every life that two lanes may have, up to a number of steps: see lane_life_world.h.
#include <gtest/gtest.h>

#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "tests/support/seed.h"
#include "tests/unit/net_socket/comm/lane_life_world.h"

namespace tcpx {
namespace lane_life {
namespace {

std::string Told(const std::vector<Move>& path) {
  return absl::StrJoin(path, ", ", [](std::string* out, const Move& move) { out->append(move.ToString()); });
}

// A world can't be copied: each state is reached anew, by the steps that led there.
void Explore(int lanes_at_start, int steps, size_t depth) {
  std::deque<std::vector<Move>> open = {{}};
  std::unordered_set<std::string> seen;
  size_t lives = 0;
  while (!open.empty()) {
    const std::vector<Move> path = std::move(open.front());
    open.pop_front();
    std::unique_ptr<World> world;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int step = 0; step < steps; ++step) {
        if (world == nullptr) {
          world = std::make_unique<World>(lanes_at_start);
          for (const Move& move : path) ASSERT_TRUE(world->Do(move)) << Told(path);
        }
        const Move move{static_cast<Step>(step), lane};
        if (!world->Do(move)) continue;  // and nothing has changed
        const std::unique_ptr<World> reached = std::move(world);
        std::vector<Move> next = path;
        next.push_back(move);
        ASSERT_EQ("", reached->Wrong()) << Told(next);
        if (!seen.insert(reached->Digest()).second) continue;
        ++lives;
        if (next.size() < depth) open.push_back(next);
        ASSERT_EQ("", reached->Finish()) << "after " << Told(next);
      }
    }
  }
  printf("%zu states within %zu steps\n", lives, depth);
  EXPECT_GT(lives, 1000u);
}

TEST(LaneLifeExplorerTest, EveryLifeEndsWell) { Explore(kLanes, kStepsUnpiloted, LongRun() ? 11 : 9); }

TEST(LaneLifeExplorerTest, EveryLifeUnderAnAutopilotEndsWell) { Explore(kLanes, kSteps, LongRun() ? 10 : 8); }

TEST(LaneLifeExplorerTest, EveryLifeOfALaneOpenedLaterEndsWell) { Explore(1, kSteps, LongRun() ? 12 : 10); }

}  // namespace
}  // namespace lane_life
}  // namespace tcpx
