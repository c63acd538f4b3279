// Who is looked at in housekeeping's rounds, and who is passed over.
#include "net_socket/health/watchdog.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <memory>

#include "common/clock.h"
#include "net_socket/engine/reactor.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

constexpr int64_t kEveryNs = kMillisecond;

class WatchdogTest : public ::testing::Test {
 protected:
  struct Subject {
    std::shared_ptr<Activity> activity = std::make_shared<Activity>();
    std::atomic<int> looks{0};
    std::atomic<Watchdog::Next> next{Watchdog::Next::kLook};
  };

  void SetUp() override { ASSERT_TRUE(reactor_.Start().ok()); }
  void TearDown() override {
    reactor_.RequestStop();
    reactor_.Join();
  }
  void Join(Subject* subject) {
    reactor_.RunSync([&] {
      watchdog_.JoinInLoop(subject->activity, kEveryNs, [subject](int64_t) {
        ++subject->looks;
        return subject->next.load();
      });
    });
  }
  // So many rounds have passed, as another counts them.
  void Pass(Subject* other, int rounds) {
    const int until = other->looks + rounds;
    const Deadline deadline;
    while (other->looks < until) ASSERT_TRUE(deadline.Yield());
  }

  std::deque<Subject> subjects_;  // looked at until the reactor ends
  Reactor reactor_;
  Watchdog watchdog_{&reactor_};
};

TEST_F(WatchdogTest, WhoIsIdleIsPassedOverUntilThereIsActivity) {
  Subject& busy = subjects_.emplace_back();
  Subject& idle = subjects_.emplace_back();
  idle.next = Watchdog::Next::kIdle;
  Join(&busy);
  Join(&idle);
  ASSERT_NO_FATAL_FAILURE(Pass(&busy, 20));
  EXPECT_EQ(1, idle.looks);
  idle.activity->Note();
  ASSERT_NO_FATAL_FAILURE(Pass(&busy, 20));
  EXPECT_EQ(2, idle.looks);
  idle.next = Watchdog::Next::kLook;
  idle.activity->Note();
  ASSERT_NO_FATAL_FAILURE(Pass(&busy, 20));
  EXPECT_GT(idle.looks, 10);
}

TEST_F(WatchdogTest, WhoHasLeftIsForgotten) {
  Subject& busy = subjects_.emplace_back();
  Subject& left = subjects_.emplace_back();
  left.next = Watchdog::Next::kIdle;
  Join(&busy);
  Join(&left);
  ASSERT_NO_FATAL_FAILURE(Pass(&busy, 2));
  left.next = Watchdog::Next::kOver;
  left.activity->Note();
  ASSERT_NO_FATAL_FAILURE(Pass(&busy, 20));
  EXPECT_EQ(2, left.looks);
  EXPECT_EQ(1, left.activity.use_count());
}

TEST_F(WatchdogTest, BeginsAgainAfterTheLastHasLeft) {
  Subject& first = subjects_.emplace_back();
  Subject& second = subjects_.emplace_back();
  first.next = Watchdog::Next::kOver;
  Join(&first);
  const Deadline deadline;
  while (first.activity.use_count() > 1) ASSERT_TRUE(deadline.Yield());
  Join(&second);
  ASSERT_NO_FATAL_FAILURE(Pass(&second, 3));
  EXPECT_EQ(1, first.looks);
}

}  // namespace
}  // namespace tcpx
