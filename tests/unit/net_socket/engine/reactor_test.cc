#include "net_socket/engine/reactor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

class ReactorTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().ok()); }

  void Stop() {
    reactor_.RequestStop();
    reactor_.Join();
  }
  bool Eventually(const std::function<bool()>& condition) {
    Deadline deadline;
    while (!condition()) {
      if (!deadline.Yield()) return false;
    }
    return true;
  }

  Reactor reactor_;
};

struct Pipe {
  Pipe() {
    int fds[2];
    EXPECT_EQ(0, pipe2(fds, O_NONBLOCK | O_CLOEXEC));
    read.reset(fds[0]);
    write.reset(fds[1]);
  }
  void Put() { EXPECT_EQ(1, ::write(write.get(), "x", 1)); }
  OwnedFd read;
  OwnedFd write;
};

class FunctionHandler final : public Reactor::Handler {
 public:
  explicit FunctionHandler(std::function<void(uint32_t)> function) : function_(std::move(function)) {}
  void OnEvents(uint32_t events) override { function_(events); }

 private:
  std::function<void(uint32_t)> function_;
};

TEST_F(ReactorTest, RunsWhatIsPostedInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) reactor_.Post([&order, i] { order.push_back(i); });
  EXPECT_TRUE(reactor_.RunSync([] {}));
  ASSERT_EQ(100u, order.size());
  for (int i = 0; i < 100; ++i) EXPECT_EQ(i, order[static_cast<size_t>(i)]);
}

TEST_F(ReactorTest, RunsInItsOwnThread) {
  std::thread::id loop;
  EXPECT_TRUE(reactor_.RunSync([&loop] { loop = std::this_thread::get_id(); }));
  EXPECT_NE(std::this_thread::get_id(), loop);
}

TEST_F(ReactorTest, PostsFromManyThreads) {
  std::atomic<int> count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) reactor_.Post([&count] { count.fetch_add(1); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  Stop();
  EXPECT_EQ(2000, count.load()) << "what was posted before the stop runs";
}

TEST_F(ReactorTest, NothingRunsAfterTheEnd) {
  Stop();
  EXPECT_TRUE(reactor_.ended());
  bool ran = false;
  EXPECT_FALSE(reactor_.RunSync([&ran] { ran = true; }));
  reactor_.Post([&ran] { ran = true; });
  EXPECT_FALSE(ran);
}

TEST_F(ReactorTest, StartsAgain) {
  Stop();
  ASSERT_TRUE(reactor_.Start().ok());
  EXPECT_FALSE(reactor_.ended());
  EXPECT_TRUE(reactor_.RunSync([] {}));
}

TEST_F(ReactorTest, TimersFireInTheOrderOfTheirTimes) {
  std::vector<int> order;
  std::atomic<bool> last{false};
  reactor_.Post([&] {
    const int64_t now = MonotonicNanos();
    reactor_.AddTimerInLoop(now + 20 * kMillisecond, [&] { last.store(true); });
    reactor_.AddTimerInLoop(now + 3 * kMillisecond, [&] { order.push_back(2); });
    reactor_.AddTimerInLoop(now + 1 * kMillisecond, [&] { order.push_back(1); });
    reactor_.AddTimerInLoop(now + 3 * kMillisecond, [&] { order.push_back(3); });
    const Reactor::TimerId cancelled = reactor_.AddTimerInLoop(now + 2 * kMillisecond, [&] { order.push_back(99); });
    reactor_.CancelTimerInLoop(cancelled);
    reactor_.AddTimerInLoop(now - 1, [&] { order.push_back(0); });
  });
  ASSERT_TRUE(Eventually([&] { return last.load(); }));
  EXPECT_EQ((std::vector<int>{0, 1, 2, 3}), order);
}

TEST_F(ReactorTest, ATimerMayAddAndCancelTimers) {
  std::atomic<int> fired{0};
  reactor_.Post([&] {
    reactor_.AddTimerInLoop(MonotonicNanos(), [&] {
      const Reactor::TimerId id =
          reactor_.AddTimerInLoop(MonotonicNanos() + kMillisecond, [&] { fired.fetch_add(100); });
      reactor_.AddTimerInLoop(MonotonicNanos() + 2 * kMillisecond, [&] { fired.fetch_add(1); });
      reactor_.CancelTimerInLoop(id);
    });
  });
  ASSERT_TRUE(Eventually([&] { return fired.load() != 0; }));
  EXPECT_EQ(1, fired.load());
}

// Story: a process that was stopped for longer than a deadline gave up a peer whose answer had come long before.
TEST_F(ReactorTest, WhatHasArrivedComesBeforeADeadline) {
  Pipe pipe;
  std::string order;
  FunctionHandler handler([&](uint32_t) {
    order += "arrived ";
    reactor_.UnwatchInLoop(pipe.read.get());
  });
  EXPECT_TRUE(reactor_.RunSync([&] {
    (void)reactor_.WatchInLoop(pipe.read.get(), EPOLLIN, &handler);
    (void)reactor_.AddTimerInLoop(MonotonicNanos() + kMillisecond, [&] { order += "deadline"; });
    pipe.Put();
    // The standstill.
    const int64_t until = MonotonicNanos() + 3 * kMillisecond;
    while (MonotonicNanos() < until) std::this_thread::yield();
  }));
  EXPECT_TRUE(Eventually([&] {
    bool over = false;
    EXPECT_TRUE(reactor_.RunSync([&] { over = order.size() > 8; }));
    return over;
  }));
  Stop();
  EXPECT_EQ("arrived deadline", order);
}

// More descriptors than one look takes are always ready: a stranger who reaches a port can cause that.
TEST_F(ReactorTest, TimersRunHoweverManyDescriptorsAreReady) {
  constexpr int kReady = 200;
  Pipe pipe;
  pipe.Put();
  std::vector<OwnedFd> ready;
  for (int i = 0; i < kReady; ++i) ready.emplace_back(dup(pipe.read.get()));
  std::atomic<int64_t> served{0};
  FunctionHandler handler([&](uint32_t) { served.fetch_add(1); });
  std::atomic<int> ticks{0};
  EXPECT_TRUE(reactor_.RunSync([&] {
    for (const OwnedFd& one : ready) EXPECT_TRUE(reactor_.WatchInLoop(one.get(), EPOLLIN, &handler).ok());
    reactor_.RepeatInLoop(kMillisecond, [&] { return ++ticks < 5 ? kMillisecond : Reactor::kOver; });
  }));
  EXPECT_TRUE(Eventually([&] { return ticks == 5; }));
  EXPECT_GT(served, kReady);
  Stop();
}

TEST_F(ReactorTest, TellsEventsOfADescriptor) {
  Pipe pipe;
  std::atomic<uint32_t> events{0};
  FunctionHandler handler([&](uint32_t seen) {
    events.store(seen);
    reactor_.UnwatchInLoop(pipe.read.get());
  });
  EXPECT_TRUE(reactor_.RunSync([&] { EXPECT_TRUE(reactor_.WatchInLoop(pipe.read.get(), EPOLLIN, &handler).ok()); }));
  EXPECT_EQ(0u, events.load());
  pipe.Put();
  ASSERT_TRUE(Eventually([&] { return events.load() != 0; }));
  EXPECT_EQ(uint32_t{EPOLLIN}, events.load());
  EXPECT_TRUE(reactor_.RunSync([] {}));  // The handler has returned.
}

TEST_F(ReactorTest, WatchingABadDescriptorIsAnError) {
  FunctionHandler handler([](uint32_t) {});
  EXPECT_TRUE(reactor_.RunSync([&] { EXPECT_FALSE(reactor_.WatchInLoop(-1, EPOLLIN, &handler).ok()); }));
}

TEST_F(ReactorTest, ChangeSilencesAndWakesADescriptor) {
  Pipe pipe;
  std::atomic<int> count{0};
  FunctionHandler handler([&](uint32_t) {
    count.fetch_add(1);
    reactor_.ChangeInLoop(pipe.read.get(), 0);
  });
  pipe.Put();
  EXPECT_TRUE(reactor_.RunSync([&] { (void)reactor_.WatchInLoop(pipe.read.get(), EPOLLIN, &handler); }));
  ASSERT_TRUE(Eventually([&] { return count.load() == 1; }));
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(reactor_.RunSync([] {}));
  EXPECT_EQ(1, count.load()) << "a silenced descriptor spoke";
  EXPECT_TRUE(reactor_.RunSync([&] { reactor_.ChangeInLoop(pipe.read.get(), EPOLLIN); }));
  ASSERT_TRUE(Eventually([&] { return count.load() == 2; }));
  EXPECT_TRUE(reactor_.RunSync([&] { reactor_.UnwatchInLoop(pipe.read.get()); }));
}

TEST_F(ReactorTest, AHandlerMayDestroyItself) {
  Pipe pipe;
  std::unique_ptr<FunctionHandler> handler;
  std::atomic<bool> gone{false};
  handler = std::make_unique<FunctionHandler>([&](uint32_t) {
    reactor_.UnwatchInLoop(pipe.read.get());
    std::atomic<bool>* flag = &gone;
    handler.reset();
    flag->store(true);
  });
  EXPECT_TRUE(reactor_.RunSync([&] { (void)reactor_.WatchInLoop(pipe.read.get(), EPOLLIN, handler.get()); }));
  pipe.Put();
  EXPECT_TRUE(Eventually([&] { return gone.load(); }));
}

// Both descriptors are ready in the same round; the first handler closes the second one and another takes its number.
TEST_F(ReactorTest, AnEventOfAClosedDescriptorReachesNobody) {
  Pipe first, second, third;
  std::atomic<int> stale{0}, fresh{0}, served{0};
  FunctionHandler fresh_handler([&](uint32_t) { fresh.fetch_add(1); });
  std::unique_ptr<FunctionHandler> handlers[2];
  OwnedFd* ends[2] = {&first.read, &second.read};
  for (int i = 0; i < 2; ++i) {
    handlers[i] = std::make_unique<FunctionHandler>([&, i](uint32_t) {
      if (served.fetch_add(1) > 0) stale.fetch_add(1);
      for (OwnedFd* end : ends) reactor_.UnwatchInLoop(end->get());
      // The other one's number now names a pipe on which nothing happens.
      EXPECT_EQ(ends[1 - i]->get(), dup2(third.read.get(), ends[1 - i]->get()));
      EXPECT_TRUE(reactor_.WatchInLoop(ends[1 - i]->get(), EPOLLIN, &fresh_handler).ok());
    });
  }
  EXPECT_TRUE(reactor_.RunSync([&] {
    for (int i = 0; i < 2; ++i) (void)reactor_.WatchInLoop(ends[i]->get(), EPOLLIN, handlers[i].get());
    first.Put();
    second.Put();
  }));
  ASSERT_TRUE(Eventually([&] { return served.load() > 0; }));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(reactor_.RunSync([] {}));
  EXPECT_EQ(0, stale.load());
  EXPECT_EQ(0, fresh.load());
  EXPECT_TRUE(reactor_.RunSync([&] {
    for (OwnedFd* end : ends) reactor_.UnwatchInLoop(end->get());
  }));
}

TEST_F(ReactorTest, AHeldLoopGoesOnUntilReleased) {
  EXPECT_TRUE(reactor_.RunSync([&] { reactor_.HoldInLoop(); }));
  reactor_.RequestStop();
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(reactor_.RunSync([] {})) << "it ended while it was held";
  EXPECT_FALSE(reactor_.ended());
  reactor_.Post([&] { reactor_.ReleaseInLoop(); });
  reactor_.Join();
  EXPECT_TRUE(reactor_.ended());
}

TEST_F(ReactorTest, JoinAndStopMayComeTwice) {
  Stop();
  Stop();
}

TEST_F(ReactorTest, ARepeatingTimerRunsAsLongAsItSays) {
  int plain = 0, cancelled = 0, self = 0;
  std::atomic<int> ended{0};
  Reactor::TimerId own{0, 0};
  reactor_.RunSync([&] {
    reactor_.RepeatInLoop(0, [&] {
      if (++plain < 5) return kMillisecond;
      ++ended;
      return Reactor::kOver;
    });
    const Reactor::TimerId id = reactor_.RepeatDeadlineInLoop(0, [&] {
      ++cancelled;
      return kMillisecond;
    });
    own = reactor_.RepeatInLoop(0, [&] {
      if (++self == 2) reactor_.CancelTimerInLoop(own);
      return int64_t{0};
    });
    reactor_.RepeatInLoop(kMillisecond, [&, id] {
      if (cancelled < 3) return kMillisecond;
      reactor_.CancelTimerInLoop(id);
      reactor_.AddTimerInLoop(MonotonicNanos() + 5 * kMillisecond, [&] { ++ended; });
      return Reactor::kOver;
    });
  });
  ASSERT_TRUE(Eventually([&] { return ended == 2; }));
  Stop();
  EXPECT_EQ(5, plain);
  EXPECT_EQ(3, cancelled);
  EXPECT_EQ(2, self);
}

TEST_F(ReactorTest, ARepeatingDeadlineIsForgivenEachStandstill) {
  std::atomic<int> runs{0};
  int64_t stood_until = 0;
  std::vector<int64_t> ran_ns;
  const auto stand = [&] {
    const timespec nap = {1, 100 * kMillisecond};
    nanosleep(&nap, nullptr);
    stood_until = MonotonicNanos();
  };
  reactor_.RunSync([&] {
    reactor_.RepeatDeadlineInLoop(0, [&] {
      ran_ns.push_back(MonotonicNanos());
      if (++runs == 2) return Reactor::kOver;
      reactor_.AddTimerInLoop(0, stand);
      return 50 * kMillisecond;
    });
  });
  ASSERT_TRUE(Eventually([&] { return runs == 2; }));
  Stop();
  EXPECT_GE(ran_ns[1] - stood_until, 45 * kMillisecond);
}

// The loop itself is stopped beyond a deadline; what arrives meanwhile cancels it, and nothing arriving does not.
TEST_F(ReactorTest, ADeadlineThatIsLateByAStandstillRunsOnceMore) {
  std::atomic<int> late{0}, cancelled{0}, plain{0};
  std::atomic<int64_t> ran_ns{0};
  int64_t standing_until = 0;
  reactor_.RunSync([&] {
    reactor_.AddDeadlineInLoop(100 * kMillisecond, [&] {
      ++late;
      ran_ns = MonotonicNanos();
    });
    const Reactor::TimerId moved = reactor_.AddDeadlineInLoop(100 * kMillisecond, [&] { ++cancelled; });
    reactor_.AddTimerInLoop(MonotonicNanos() + 100 * kMillisecond, [&, moved] {
      ++plain;
      reactor_.AddTimerInLoop(MonotonicNanos(), [&, moved] { reactor_.CancelTimerInLoop(moved); });
    });
    const timespec nap = {1, 300 * kMillisecond};
    nanosleep(&nap, nullptr);
    standing_until = MonotonicNanos();
  });
  ASSERT_TRUE(Eventually([&] { return late > 0; }));
  EXPECT_GE(ran_ns - standing_until, 90 * kMillisecond);
  EXPECT_EQ(1, late);
  EXPECT_EQ(1, plain);
  EXPECT_EQ(0, cancelled);
}

}  // namespace
}  // namespace tcpx
