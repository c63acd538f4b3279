// Which dial begins next, where thousands go to one peer.
#include "net_socket/connect/dial_turns.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "net_socket/engine/reactor.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

class DialTurnsTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().ok()); }
  void TearDown() override {
    reactor_.RunSync([this] { turns_.CloseInLoop(); });
    reactor_.RequestStop();
    reactor_.Join();
  }
  void AwaitInLoop(const std::string& peer, uint64_t dial, int lanes = 1) {
    turns_.AwaitInLoop(peer, dial, lanes, [this, dial] { begun_.insert(dial); });
  }
  size_t Begun() {
    size_t begun = 0;
    reactor_.RunSync([&] { begun = begun_.size(); });
    return begun;
  }
  bool BegunWithin(size_t count) {
    Deadline deadline;
    while (Begun() < count && deadline.Yield()) {
    }
    return Begun() == count;
  }

  static constexpr uint64_t kMost = DialTurns::kLanesAtOnce;
  Reactor reactor_;
  DialTurns turns_{&reactor_};
  std::set<uint64_t> begun_;
};

TEST_F(DialTurnsTest, SoManyAtOnce) {
  size_t at_once = 0;
  reactor_.RunSync([&] {
    for (uint64_t dial = 0; dial < 4 * kMost; ++dial) AwaitInLoop("a", dial);
    at_once = begun_.size();
  });
  EXPECT_EQ(kMost, at_once);
}

TEST_F(DialTurnsTest, PeersDoNotWaitForEachOther) {
  reactor_.RunSync([&] {
    for (uint64_t dial = 0; dial < kMost; ++dial) AwaitInLoop("a", dial);
    AwaitInLoop("b", kMost);
  });
  EXPECT_EQ(kMost + 1, Begun());
}

TEST_F(DialTurnsTest, TheNextBeginsWhereOneHasEnded) {
  bool waits = false;
  reactor_.RunSync([&] {
    for (uint64_t dial = 0; dial < kMost + 2; ++dial) AwaitInLoop("a", dial);
    turns_.EndedInLoop("a", 0);
    turns_.EndedInLoop("a", 0);
    // Not on the stack of the one that has ended.
    waits = begun_.size() == kMost;
  });
  EXPECT_TRUE(waits);
  EXPECT_TRUE(BegunWithin(kMost + 1));
}

TEST_F(DialTurnsTest, WhoGivesUpWhileItWaitsNeverBegins) {
  reactor_.RunSync([&] {
    for (uint64_t dial = 0; dial < kMost + 2; ++dial) AwaitInLoop("a", dial);
    turns_.EndedInLoop("a", kMost);
    turns_.EndedInLoop("a", 0);
  });
  EXPECT_TRUE(BegunWithin(kMost + 1));
  bool begun = true;
  reactor_.RunSync([&] { begun = begun_.count(kMost) == 1; });
  EXPECT_FALSE(begun);
}

TEST_F(DialTurnsTest, LanesCount) {
  reactor_.RunSync([&] {
    AwaitInLoop("a", 1, 2 * DialTurns::kLanesAtOnce);  // more than may be: alone
    AwaitInLoop("a", 2);
  });
  EXPECT_EQ(1U, Begun());
}

TEST_F(DialTurnsTest, WhereNoneEndsTheNextBeginAllTheSame) {
  reactor_.RunSync([&] {
    for (uint64_t dial = 0; dial < 2 * kMost; ++dial) AwaitInLoop("a", dial);
  });
  EXPECT_TRUE(BegunWithin(2 * kMost));
}

}  // namespace
}  // namespace tcpx
