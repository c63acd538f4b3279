#include "net_socket/engine/progress_pool.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/support/seed.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/engine/pool_fixture.h"

namespace tcpx {
namespace {

// Counts how often its thread let it go.
class LeavingLane final : public PoolLane {
 public:
  explicit LeavingLane(int fd) { op_.fd = fd; }

  void AdvanceInLoop(Engine* engine) override {
    if (op_.in_flight) return;
    op_.kind = IoOp::Kind::kReceive;
    op_.iov[0] = {buffer_, sizeof(buffer_)};
    op_.iov_count = 1;
    Submit(engine, &op_);
  }
  void CompleteInLoop(const Completion&) override {}
  void LeaveInLoop(Engine* engine) override {
    left.fetch_add(1);
    PoolLane::LeaveInLoop(engine);
  }

  std::atomic<int> left{0};

 private:
  char buffer_[1];
};

TEST_P(ProgressPoolTest, AnAttachedLaneIsServed) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 1));
  TcpPair pair = MakeTcpPair();
  EchoLane lane(pair.b.get());
  pool.Attach(&lane);
  ASSERT_TRUE(Eventually([&] { return lane.advanced.load() > 0; }));
  for (int i = 1; i <= 100; ++i) {
    ASSERT_TRUE(WriteAll(pair.a.get(), "x"));
    ASSERT_TRUE(Eventually([&] { return lane.received.load() == i; })) << i;
  }
  DetachAndCheck(&lane);
  pool.Stop();
  EXPECT_FALSE(lane.called_after_detach.load());
}

TEST_P(ProgressPoolTest, AKickWakesASleepingThread) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 1));
  TcpPair pair = MakeTcpPair();
  EchoLane lane(pair.b.get());
  pool.Attach(&lane);
  ASSERT_TRUE(Eventually([&] { return lane.advanced.load() > 0; }));
  for (int i = 0; i < 200; ++i) {
    const int before = lane.advanced.load();
    // Sometimes the thread spins still, sometimes it is falling asleep, sometimes it sleeps.
    std::this_thread::sleep_for(std::chrono::microseconds(i % 8 * 20));
    ProgressPool::Kick(&lane);
    ASSERT_TRUE(Eventually([&] { return lane.advanced.load() > before; })) << "kick " << i << " was lost";
  }
  DetachAndCheck(&lane);
}

TEST_P(ProgressPoolTest, KicksFromManyThreadsAreNotLost) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 2));
  std::vector<TcpPair> pairs(4);
  std::vector<std::unique_ptr<EchoLane>> lanes;
  for (TcpPair& pair : pairs) {
    pair = MakeTcpPair();
    lanes.push_back(std::make_unique<EchoLane>(pair.b.get()));
    pool.Attach(lanes.back().get());
  }
  std::vector<std::thread> kickers;
  for (int t = 0; t < 3; ++t) {
    kickers.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) ProgressPool::Kick(lanes[static_cast<size_t>(i % 4)].get());
    });
  }
  for (std::thread& kicker : kickers) kicker.join();
  for (auto& lane : lanes) {
    const int before = lane->advanced.load();
    ProgressPool::Kick(lane.get());
    EXPECT_TRUE(Eventually([&] { return lane->advanced.load() > before; }));
    DetachAndCheck(lane.get());
  }
}

TEST_P(ProgressPoolTest, LanesAreSpreadOverTheThreadsAndStayThere) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 3));
  std::vector<TcpPair> pairs(6);
  std::vector<std::unique_ptr<EchoLane>> lanes;
  std::multiset<pid_t> threads;
  for (TcpPair& pair : pairs) {
    pair = MakeTcpPair();
    lanes.push_back(std::make_unique<EchoLane>(pair.b.get()));
    pool.Attach(lanes.back().get());
    ASSERT_TRUE(Eventually([&] { return lanes.back()->thread.load() != 0; }));
    threads.insert(lanes.back()->thread.load());
  }
  for (const pid_t thread : threads) EXPECT_EQ(2u, threads.count(thread));
  for (size_t i = 0; i < lanes.size(); ++i) {
    const pid_t before = lanes[i]->thread.load();
    ASSERT_TRUE(WriteAll(pairs[i].a.get(), "x"));
    ASSERT_TRUE(Eventually([&] { return lanes[i]->received.load() == 1; }));
    EXPECT_EQ(before, lanes[i]->thread.load());
    DetachAndCheck(lanes[i].get());
  }
}

TEST_P(ProgressPoolTest, DetachWithAnOperationInFlight) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 2));
  for (int round = 0; round < 100; ++round) {
    TcpPair pair = MakeTcpPair();
    auto lane = std::make_unique<EchoLane>(pair.b.get());
    pool.Attach(lane.get());
    // Now and then the receive is with the kernel, or has data already, or was never submitted.
    if (round % 3 != 0) {
      ASSERT_TRUE(Eventually([&] { return lane->advanced.load() > 0; }));
    }
    if (round % 3 == 2) {
      ASSERT_TRUE(WriteAll(pair.a.get(), "x"));
    }
    DetachAndCheck(lane.get());
    EXPECT_FALSE(lane->called_after_detach.load());
    // What comes after the detach stays in the socket: no operation of the lane takes it.
    ASSERT_TRUE(WriteAll(pair.a.get(), "y"));
    std::string got;
    ASSERT_TRUE(Eventually([&] {
      got += ReadAvailable(pair.b.get());
      return !got.empty() && got.back() == 'y';
    }));
  }
}

TEST_P(ProgressPoolTest, DetachWhileOthersKick) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 1));
  for (int round = 0; round < 50; ++round) {
    TcpPair pair = MakeTcpPair();
    auto lane = std::make_unique<EchoLane>(pair.b.get());
    pool.Attach(lane.get());
    for (int i = 0; i < round % 5; ++i) ProgressPool::Kick(lane.get());
    DetachAndCheck(lane.get());
    EXPECT_FALSE(lane->called_after_detach.load());
  }
}

// Waits without an operation: asks to be called again after a while.
class RetryLane final : public PoolLane {
 public:
  explicit RetryLane(int fd) { op_.fd = fd; }
  void AdvanceInLoop(Engine*) override {
    advanced.fetch_add(1);
    if (wants.load() > 0) {
      wants.fetch_sub(1);
      retry_at_ns_ = MonotonicNanos() + kMillisecond;
    }
  }
  void CompleteInLoop(const Completion&) override {}

  std::atomic<int> advanced{0};
  std::atomic<int> wants{0};
};

// A completion that came between Detach's mark and its place in the queue let the lane go, and the queue served it once
// more, when its owner had destroyed it perhaps.
TEST_P(ProgressPoolTest, DetachThatMeetsACompletionIsServedOnce) {
  ProgressPool pool;
  Start(&pool, 1);
  TcpPair pair = MakeTcpPair();
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    while (!stop.load()) (void)!send(pair.a.get(), "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
  });
  std::vector<std::unique_ptr<LeavingLane>> lanes;
  const int rounds = (LongRun() ? 200000 : 20000) / TimeScale();
  for (int i = 0; i < rounds; ++i) {
    lanes.push_back(std::make_unique<LeavingLane>(pair.b.get()));
    pool.Attach(lanes.back().get());
    ProgressPool::Detach(lanes.back().get());
  }
  stop.store(true);
  writer.join();
  pool.Stop();
  for (const auto& lane : lanes) ASSERT_EQ(1, lane->left.load());
}

TEST_P(ProgressPoolTest, ALaneThatWaitsForATimeIsCalledAgain) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 1));
  TcpPair pair = MakeTcpPair(), other = MakeTcpPair();
  RetryLane first(pair.a.get()), second(pair.b.get());
  first.wants.store(5);
  second.wants.store(3);
  pool.Attach(&first);
  pool.Attach(&second);
  ASSERT_TRUE(Eventually([&] { return first.advanced.load() == 6 && second.advanced.load() == 4; }));
  // Kicks come in between; no lane is forgotten, and one that waits for nothing is left alone.
  first.wants.store(50);
  ProgressPool::Kick(&first);
  ProgressPool::Kick(&second);
  ASSERT_TRUE(Eventually([&] { return first.wants.load() == 0 && second.advanced.load() == 5; }));
  // Detached in the middle of a wait.
  second.wants.store(1 << 20);
  ProgressPool::Kick(&second);
  ASSERT_TRUE(Eventually([&] { return second.advanced.load() > 8; }));
  ProgressPool::Detach(&second);
  const int after = second.advanced.load();
  // Without a pause its thread might not run before the next look; nothing tells that it leaves the lane alone.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(after, second.advanced.load());
  EchoLane lane(other.b.get());
  pool.Attach(&lane);
  ASSERT_TRUE(WriteAll(other.a.get(), "x"));
  EXPECT_TRUE(Eventually([&] { return lane.received.load() == 1; }));
  DetachAndCheck(&lane);
  ProgressPool::Detach(&first);
}

TEST_P(ProgressPoolTest, DetachOfALaneThatWasNeverAttached) {
  EchoLane lane(-1);
  ProgressPool::Detach(&lane);
  ProgressPool::Detach(&lane);
}

TEST_P(ProgressPoolTest, DetachAfterTheThreadsEnded) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 1));
  TcpPair pair = MakeTcpPair();
  EchoLane lane(pair.b.get());
  pool.Attach(&lane);
  ASSERT_TRUE(Eventually([&] { return lane.advanced.load() > 0; }));
  pool.Stop();
  ProgressPool::Detach(&lane);
}

// The state letter of a thread: S is asleep (proc(5)).
char ThreadState(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(") ");
  return name_end == std::string::npos ? '?' : text[name_end + 2];
}

TEST_P(ProgressPoolTest, AnIdleThreadSleeps) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 1));
  TcpPair pair = MakeTcpPair();
  EchoLane lane(pair.b.get());
  pool.Attach(&lane);
  ASSERT_TRUE(WriteAll(pair.a.get(), "x"));
  ASSERT_TRUE(Eventually([&] { return lane.received.load() == 1; }));
  int asleep = 0;
  ASSERT_TRUE(Eventually([&] {
    asleep = ThreadState(lane.thread.load()) == 'S' ? asleep + 1 : 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return asleep == 20;
  })) << "the thread does not go to sleep";
  ASSERT_TRUE(WriteAll(pair.a.get(), "x"));
  EXPECT_TRUE(Eventually([&] { return lane.received.load() == 2; }));
  DetachAndCheck(&lane);
}

TEST_P(ProgressPoolTest, EndOfStreamAndResetReachTheLane) {
  ProgressPool pool;
  ASSERT_NO_FATAL_FAILURE(Start(&pool, 1));
  for (const bool reset : {false, true}) {
    TcpPair pair = MakeTcpPair();
    EchoLane lane(pair.b.get());
    pool.Attach(&lane);
    ASSERT_TRUE(Eventually([&] { return lane.advanced.load() > 0; }));
    if (reset) {
      ResetSocket(std::move(pair.a));
    } else {
      pair.a.reset();
    }
    EXPECT_TRUE(Eventually([&] { return lane.ended.load(); }));
    DetachAndCheck(&lane);
  }
}

INSTANTIATE_TEST_SUITE_P(Engines, ProgressPoolTest, ::testing::Values(EngineChoice::kEpoll, EngineChoice::kIoUring),
                         EngineTestName);

}  // namespace
}  // namespace tcpx
