#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "net_socket/receive/lane_stage.h"

namespace tcpx {
namespace {

TEST(StagePoolTest, GivesTheSameBufferAgain) {
  StagePool pool;
  PageBuffer stage = pool.Take();
  char* const first = stage.get();
  std::memset(first, 'x', kStageBytes);
  pool.Give(std::move(stage));
  EXPECT_EQ(first, pool.Take().get());
}

TEST(StagePoolTest, BuffersBeginOnAPage) {
  StagePool pool;
  std::vector<PageBuffer> stages;
  for (int i = 0; i < 5; ++i) {
    stages.push_back(pool.Take());
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(stages.back().get()) % 4096);
  }
}

TEST(StagePoolTest, BuffersInUseAreDistinct) {
  StagePool pool;
  std::vector<PageBuffer> stages;
  std::set<char*> distinct;
  for (int i = 0; i < 40; ++i) {
    stages.push_back(pool.Take());
    EXPECT_TRUE(distinct.insert(stages.back().get()).second);
  }
  for (auto& stage : stages) pool.Give(std::move(stage));
  stages.clear();
  distinct.clear();
  for (int i = 0; i < 40; ++i) {
    stages.push_back(pool.Take());
    EXPECT_TRUE(distinct.insert(stages.back().get()).second);
  }
}

TEST(StagePoolTest, ThreadsNeverShareABuffer) {
  StagePool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 300; ++i) {
        PageBuffer stage = pool.Take();
        std::memset(stage.get(), t, 4096);
        std::this_thread::yield();
        for (int at = 0; at < 4096; ++at) ASSERT_EQ(t, stage[at]);
        pool.Give(std::move(stage));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tcpx
