// Which thread a lane goes to, and where the threads run.
#include <gtest/gtest.h>
#include <sched.h>

#include <memory>
#include <string>
#include <vector>

#include "common/cpu_plan.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/engine/pool_fixture.h"

namespace tcpx {
namespace {

using PoolPlacesTest = ProgressPoolTest;

TEST_P(PoolPlacesTest, ALaneGoesToAThreadNearItsDevice) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 3, {{{}, {0, 2}, false}, {{}, {1}, false}, {{}, {1}, false}}));
  TcpPair pair = MakeTcpPair();
  std::vector<std::unique_ptr<EchoLane>> lanes;
  const auto attach = [&](int device) {
    lanes.push_back(std::make_unique<EchoLane>(pair.b.get()));
    lanes.back()->ended.store(true);  // submits nothing
    pool.Attach(lanes.back().get(), device);
    EXPECT_TRUE(Eventually([&] { return lanes.back()->thread.load() != 0; }));
    return lanes.back()->thread.load();
  };
  const pid_t first = attach(0);
  EXPECT_EQ(attach(2), first);
  const pid_t second = attach(1);
  const pid_t third = attach(1);
  EXPECT_NE(second, first);
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
  // A device that none is near goes where there are the fewest lanes.
  EXPECT_NE(attach(9), first);
  DetachAndCheck(lanes[0].get());
  DetachAndCheck(lanes[1].get());
  EXPECT_EQ(attach(9), first);
  for (auto& lane : lanes) DetachAndCheck(lane.get());
}

TEST_P(PoolPlacesTest, AThreadRunsInItsPlace) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  std::vector<int> allowed;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before)) allowed.push_back(cpu);
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(allowed.front(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  ProgressPool pool;
  Start(&pool, 2, {{allowed, {}, false}, {{allowed.back()}, {}, true}});
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
  TcpPair pair = MakeTcpPair();
  EchoLane lanes[] = {EchoLane(pair.a.get()), EchoLane(pair.b.get())};
  for (EchoLane& lane : lanes) {
    lane.ended.store(true);
    pool.Attach(&lane);
    ASSERT_TRUE(Eventually([&] { return lane.thread.load() != 0; }));
  }
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(lanes[0].thread.load(), sizeof(set), &set), 0);
  EXPECT_TRUE(CPU_EQUAL(&set, &before)) << "the creator's mask was inherited";
  ASSERT_EQ(sched_getaffinity(lanes[1].thread.load(), sizeof(set), &set), 0);
  EXPECT_EQ(CPU_COUNT(&set), 1);
  EXPECT_TRUE(CPU_ISSET(allowed.back(), &set));
  for (EchoLane& lane : lanes) DetachAndCheck(&lane);
}

INSTANTIATE_TEST_SUITE_P(Engines, PoolPlacesTest, ::testing::Values(EngineChoice::kEpoll, EngineChoice::kIoUring),
                         EngineTestName);

}  // namespace
}  // namespace tcpx
