#include "net_socket/health/slow_lanes.h"

#include <gtest/gtest.h>

#include <utility>

#include "common/clock.h"

namespace tcpx {
namespace {

constexpr int64_t kLong = 10 * kSecond;
constexpr int64_t kFast = 100'000'000;

// Lanes that send as fast as their pace allows, looked at every 2 s.
class SlowLanesTest : public ::testing::Test {
 protected:
  // Which lanes are found in `looks` looks, each with how often.
  std::vector<int> Run(const std::vector<int64_t>& paces, int looks, double busy = 1) {
    lanes_.resize(paces.size());
    std::vector<int> found(paces.size());
    for (int look = 0; look < looks; ++look) {
      now_ += 2 * kSecond;
      for (size_t i = 0; i < paces.size(); ++i) {
        lanes_[i].bytes_per_second = paces[i];
        lanes_[i].bytes_sent += static_cast<uint64_t>(2 * busy * static_cast<double>(paces[i]));
      }
      for (const SlowLane& slow : slow_.Look(lanes_, now_, kLong)) {
        ++found[slow.lane];
        EXPECT_EQ(paces[slow.lane], slow.bytes_per_second);
        EXPECT_EQ(kFast, slow.median);
      }
    }
    return found;
  }

  SlowLanes slow_;
  std::vector<LanePace> lanes_;
  int64_t now_ = kSecond;
};

TEST_F(SlowLanesTest, FindsTheSlowOneOnceAfterTheTime) {
  EXPECT_EQ((std::vector<int>{0, 0, 0, 0}), Run({kFast, kFast, kFast / 10, kFast}, 5)) << "8 s";
  EXPECT_EQ((std::vector<int>{0, 0, 1, 0}), Run({kFast, kFast, kFast / 10, kFast}, 1)) << "10 s";
  EXPECT_EQ((std::vector<int>{0, 0, 0, 0}), Run({kFast, kFast, kFast / 10, kFast}, 50));
}

TEST_F(SlowLanesTest, OfTwoLanesTheFasterIsTheMeasure) {
  EXPECT_EQ((std::vector<int>{1, 0}), Run({kFast / 3, kFast}, 20));
}

TEST_F(SlowLanesTest, NamesItAgainOnlyAfterItWasFast) {
  EXPECT_EQ((std::vector<int>{1, 0}), Run({kFast / 3, kFast}, 20));
  EXPECT_EQ((std::vector<int>{0, 0}), Run({kFast / 3, kFast}, 5, 0.1)) << "idle in between";
  EXPECT_EQ((std::vector<int>{0, 0}), Run({kFast / 3, kFast}, 20));
  EXPECT_EQ((std::vector<int>{0, 0}), Run({kFast, kFast}, 1));
  EXPECT_EQ((std::vector<int>{1, 0}), Run({kFast / 3, kFast}, 20));
}

TEST_F(SlowLanesTest, SlowForAMomentIsNotSlow) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ((std::vector<int>{0, 0}), Run({kFast / 3, kFast}, 4));
    EXPECT_EQ((std::vector<int>{0, 0}), Run({kFast, kFast}, 1));
  }
}

TEST_F(SlowLanesTest, LanesWithLittleWorkAreNotJudged) {
  EXPECT_EQ((std::vector<int>{0, 0, 0}), Run({kFast, kFast / 10, kFast}, 50, 0.3));
}

TEST_F(SlowLanesTest, NobodyIsJudgedWhileAPaceIsUnknownOrAlone) {
  EXPECT_EQ((std::vector<int>{0, 0, 0}), Run({kFast, kFast / 10, 0}, 50));
  SlowLanes alone;
  EXPECT_TRUE(alone.Look({{kFast, 0}}, kSecond, kLong).empty());
  EXPECT_TRUE(alone.Look({{kFast, 1000}}, 30 * kSecond, kLong).empty());
  SlowLanes none;
  EXPECT_TRUE(none.Look({}, kSecond, kLong).empty());
}

TEST_F(SlowLanesTest, NobodyIsComparedWithALaneThatDoesNotCarry) {
  SlowLanes slow;
  std::vector<LanePace> lanes = {{kFast, 0}, {kFast / 10, 0}, {0, 0, false}, {0, 0, false}};
  size_t found = 0;
  for (int64_t now = kSecond; now < 30 * kSecond; now += kSecond) {
    found += slow.Look(lanes, now, kLong).size();
    for (LanePace& lane : lanes) lane.bytes_sent += static_cast<uint64_t>(lane.bytes_per_second);
  }
  EXPECT_EQ(1u, found);
}

TEST_F(SlowLanesTest, HalfThePaceIsNotSlow) { EXPECT_EQ((std::vector<int>{0, 0}), Run({kFast / 2, kFast}, 50)); }

TEST_F(SlowLanesTest, FewLooksAreNotEnoughHoweverFarApart) {
  std::vector<LanePace> lanes = {{kFast, 0}, {kFast / 10, 0}};
  int64_t now = kSecond;
  slow_.Look(lanes, now, kLong);
  for (int look = 1; look <= SlowLanes::kLooksMin; ++look) {
    now += kLong;
    for (LanePace& lane : lanes) lane.bytes_sent += static_cast<uint64_t>(10 * lane.bytes_per_second);
    EXPECT_EQ(look == SlowLanes::kLooksMin ? 1 : 0, slow_.Look(lanes, now, kLong).size()) << look;
  }
}

}  // namespace
}  // namespace tcpx
