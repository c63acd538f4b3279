// Which contexts there are, and where lines of no context go.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/log.h"
#include "net_socket/plugin/context.h"

namespace tcpx {
namespace {

int g_first = 0;
int g_second = 0;
void First(LogLevel, uint64_t, const char*, int, const char*) { ++g_first; }
void Second(LogLevel, uint64_t, const char*, int, const char*) { ++g_second; }

class ContextTableTest : public ::testing::Test {
 protected:
  void SetUp() override { g_first = g_second = 0; }
  void TearDown() override { SetLogSink(nullptr); }

  Context* Add(int api_version, LogSink log) {
    contexts_.OfferLog(log);
    ContextOptions options;
    options.api_version = api_version;
    options.log = log;
    return contexts_.Add(std::make_unique<Context>(options, kNoTrafficClass, true));
  }

  ContextTable contexts_;
};

// NCCL starts each GPU's communicator on a thread of its own.
TEST_F(ContextTableTest, AnRmaContextJoinsTheOneOfItsThread) {
  constexpr int kGpus = 8;
  std::atomic<int> made{0};
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    threads.emplace_back([this, gpu, &made, &mutex] {
      ContextOptions options;
      options.api_version = 12;
      options.comm_id = 7;
      std::unique_lock<std::mutex> lock(mutex);
      const Context* const net = contexts_.Add(std::make_unique<Context>(options, 40 + gpu, true));
      lock.unlock();
      for (++made; made < kGpus;) std::this_thread::yield();
      options.one_sided = true;
      Context rma(options, kNoTrafficClass, true);
      lock.lock();
      contexts_.JoinGroup(&rma);
      EXPECT_EQ(rma.communicator->group, net->communicator->group);
      EXPECT_EQ(rma.communicator->traffic_class, 40 + gpu);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ContextTableTest, ANullLoggerReplacesNone) {
  Add(12, &First);
  Add(12, nullptr);
  TCPX_WARN("a line of no context");
  EXPECT_EQ(1, g_first);
}

TEST_F(ContextTableTest, LinesGoToALoggerThatIsStillInUse) {
  Add(12, &First);
  Context* const second = Add(12, &Second);
  TCPX_WARN("to the newest");
  EXPECT_EQ(1, g_second);
  contexts_.Remove(second);
  EXPECT_FALSE(contexts_.contains(second));
  TCPX_WARN("to the one that is left");
  EXPECT_EQ(1, g_first);
  EXPECT_EQ(1, g_second);
}

TEST_F(ContextTableTest, TheLoggerOfTwoStaysWithTheOneThatIsLeft) {
  Context* const gone = Add(12, &First);
  Add(12, &First);
  contexts_.Remove(gone);
  TCPX_WARN("a line of no context");
  EXPECT_EQ(1, g_first);
}

TEST_F(ContextTableTest, TheContextOfOlderVersionsIsTheProcesss) {
  EXPECT_EQ(nullptr, contexts_.legacy());
  Add(12, nullptr);
  EXPECT_EQ(nullptr, contexts_.legacy());
  Context* const old = Add(10, nullptr);
  EXPECT_EQ(old, contexts_.legacy());
}

TEST_F(ContextTableTest, VersionsFrom9OnShowTheHint) {
  EXPECT_FALSE(contexts_.ShowsReceiveHint());
  Add(8, nullptr);
  EXPECT_FALSE(contexts_.ShowsReceiveHint());
  Add(11, nullptr);
  EXPECT_TRUE(contexts_.ShowsReceiveHint());
}

}  // namespace
}  // namespace tcpx
