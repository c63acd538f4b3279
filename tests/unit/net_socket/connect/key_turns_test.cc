// Who is served next, where a crowd asks for keys.
#include "net_socket/connect/key_turns.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/address.h"
#include "common/clock.h"
#include "net_socket/engine/reactor.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

class Waiter final : public KeyTurns::Waiter {
 public:
  explicit Waiter(std::function<void()> turn) : turn_(std::move(turn)) {}
  void KeyTurnInLoop() override { turn_(); }

 private:
  const std::function<void()> turn_;
};

PeerSource Source(const char* address) { return SourceOf(*SocketAddress::Parse(address)); }

TEST(PeerSourceTest, AnAddressOrANetwork) {
  EXPECT_NE(Source("10.0.0.1"), Source("10.0.0.2"));
  EXPECT_EQ(Source("2001:db8::1"), Source("2001:db8::2"));
  EXPECT_NE(Source("2001:db8::1"), Source("2001:db8:0:1::1"));
  EXPECT_NE(Source("fe80::1"), Source("fe80::2"));
}

class KeyTurnsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().ok()); }
  void TearDown() override {
    reactor_.RequestStop();
    reactor_.Join();
  }
  // A waiter that notes its name, and takes so long.
  Waiter* Add(const char* name, int64_t takes_ns = 0) {
    waiters_.push_back(std::make_unique<Waiter>([this, name, takes_ns] {
      served_ += name;
      const int64_t until = MonotonicNanos() + takes_ns;
      while (MonotonicNanos() < until) {
      }
    }));
    return waiters_.back().get();
  }
  std::string ServedInAll(size_t letters) {
    Deadline deadline;
    std::string served;
    while (served.size() < letters && deadline.Yield()) reactor_.RunSync([&] { served = served_; });
    return served;
  }

  Reactor reactor_;
  KeyTurns turns_{&reactor_};
  std::vector<std::unique_ptr<Waiter>> waiters_;
  std::string served_;
};

TEST_F(KeyTurnsTest, SourcesComeInACircle) {
  reactor_.RunSync([&] {
    for (int i = 0; i < 4; ++i) turns_.AwaitInLoop(Source("10.0.0.1"), Add("a"));
    turns_.AwaitInLoop(Source("10.0.0.2"), Add("b"));
    for (int i = 0; i < 2; ++i) turns_.AwaitInLoop(Source("10.0.0.3"), Add("c"));
  });
  EXPECT_EQ("abcacaa", ServedInAll(7));
}

TEST_F(KeyTurnsTest, ADiallerThatGivesUpIsNotServed) {
  reactor_.RunSync([&] {
    Waiter* const only = Add("x");
    turns_.AwaitInLoop(Source("10.0.0.1"), only);
    turns_.AwaitInLoop(Source("10.0.0.2"), Add("a"));
    Waiter* const second = Add("x");
    turns_.AwaitInLoop(Source("10.0.0.2"), second);
    turns_.AwaitInLoop(Source("10.0.0.2"), Add("b"));
    turns_.GiveUpInLoop(Source("10.0.0.1"), only);
    turns_.GiveUpInLoop(Source("10.0.0.2"), second);
    turns_.GiveUpInLoop(Source("10.0.0.3"), second);
  });
  EXPECT_EQ("ab", ServedInAll(2));
}

// What else the loop does comes in between.
TEST_F(KeyTurnsTest, ATurnIsShort) {
  std::string order;
  reactor_.RunSync([&] {
    for (int i = 0; i < 100; ++i) turns_.AwaitInLoop(Source("10.0.0.1"), Add("k", KeyTurns::kTurnNs / 4));
    reactor_.Post([&] { order = served_; });
  });
  EXPECT_EQ(100u, ServedInAll(100).size());
  EXPECT_LE(order.size(), 5u) << "of 100 before what was posted with them";
}

}  // namespace
}  // namespace tcpx
