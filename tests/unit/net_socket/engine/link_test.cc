// A link reaches its target until that is closed, and never afterwards.
#include "net_socket/engine/link.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "absl/container/flat_hash_set.h"

namespace tcpx {
namespace {

struct Base {
  int uses = 0;
};
struct Target : Base {
  Tie tie;
};

TEST(LinkTest, ReachesItsTargetUntilThatIsClosed) {
  Target target;
  const Link<Target> link = target.tie.To(&target);
  const Link<Base> base = link;
  EXPECT_TRUE(link.any());
  EXPECT_FALSE(link.cut());
  link.With([](Target* one) { ++one->uses; });
  EXPECT_EQ(2, base.Ask(7, [](Base* one) { return ++one->uses; }));
  target.tie.Cut();
  EXPECT_TRUE(base.any());
  EXPECT_TRUE(base.cut());
  base.With([](Base*) { FAIL(); });
  EXPECT_EQ(7, link.Ask(7, [](Target*) { return 8; }));
}

TEST(LinkTest, OutlivesItsTarget) {
  auto target = std::make_unique<Target>();
  const Link<Target> link = target->tie.To(target.get());
  target.reset();
  EXPECT_TRUE(link.cut());
}

TEST(LinkTest, ToNobodyIsCut) {
  const Link<Target> link;
  EXPECT_FALSE(link.any());
  EXPECT_TRUE(link.cut());
}

TEST(LinkTest, ThoseOfOneTieAreOne) {
  Target one, other;
  absl::flat_hash_set<Link<Base>> links = {one.tie.To<Base>(&one), one.tie.To<Base>(&one), other.tie.To<Base>(&other)};
  EXPECT_EQ(2u, links.size());
  one.tie.Cut();
  EXPECT_EQ(1u, links.erase(one.tie.To<Base>(&one)));
}

TEST(LinkTest, ACutWaitsForItsUser) {
  Target target;
  std::atomic<bool> used{false}, over{false};
  std::thread user([&, link = target.tie.To(&target)] {
    link.With([&](Target* one) {
      used = true;
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      ++one->uses;
      over = true;
    });
  });
  while (!used) std::this_thread::yield();
  target.tie.Cut();
  EXPECT_TRUE(over);
  user.join();
  EXPECT_EQ(1, target.uses);
}

}  // namespace
}  // namespace tcpx
