// Whose connection gets all its lanes where there is no room for others: one for a limited time, and the sources that
// wait one after the other.
#include "net_socket/connect/unaccepted.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/clock.h"

namespace tcpx {
namespace {

constexpr int64_t kTurn = 10 * kSecond;
// In which a dialler that is refused asks again.
constexpr int64_t kPause = kSecond;

class FreePlaceTest : public ::testing::Test {
 protected:
  using Place = std::shared_ptr<UnacceptedPlace>;

  static PeerSource SourceOfHost(int host) {
    PeerSource source{};
    source[0] = static_cast<uint8_t>(host);
    source[1] = static_cast<uint8_t>(host >> 8);
    return source;
  }
  Place Come(int host) {
    ConnectionId id{};
    ++came_;
    for (size_t i = 0; i < sizeof(came_); ++i) id[i] = static_cast<uint8_t>(came_ >> (8 * i));
    return std::make_shared<UnacceptedPlace>(taken_, free_place_, id, SourceOfHost(host));
  }
  // Without room.
  bool Gets(const Place& place) { return free_place_->Ask(place, false, now_); }
  // As the owner does: the one that is overdue goes.
  bool GetsAfter(Place* before, const Place& place) {
    if (Gets(place)) return true;
    const auto overdue = free_place_->Overdue(place->source(), kTurn, now_);
    if (!overdue.has_value() || *before == nullptr || *overdue != (*before)->id()) return false;
    before->reset();
    return Gets(place);
  }

  const std::shared_ptr<FreePlace> free_place_ = std::make_shared<FreePlace>();
  const std::shared_ptr<std::atomic<int64_t>> taken_ = std::make_shared<std::atomic<int64_t>>(0);
  uint32_t came_ = 0;
  int64_t now_ = kSecond;
};

TEST_F(FreePlaceTest, OneHasItUntilItGoes) {
  Place first = Come(1);
  const Place second = Come(2);
  EXPECT_TRUE(Gets(first));
  EXPECT_TRUE(Gets(first));
  EXPECT_FALSE(Gets(second));
  EXPECT_TRUE(free_place_->Ask(second, true, now_)) << "there is room for it";
  first.reset();
  EXPECT_TRUE(Gets(second));
}

// Nobody is ended for nothing.
TEST_F(FreePlaceTest, ItsTimeIsOverOnlyWhereSomebodyWaits) {
  Place first = Come(1);
  const Place second = Come(2);
  ASSERT_TRUE(Gets(first));
  now_ += 100 * kTurn;
  EXPECT_EQ(std::nullopt, free_place_->Overdue(SourceOfHost(2), kTurn, now_));
  EXPECT_FALSE(GetsAfter(&first, second)) << "it has only just come";
  now_ += kPause;
  EXPECT_EQ(std::nullopt, free_place_->Overdue(SourceOfHost(3), kTurn, now_)) << "who does not wait";
  EXPECT_TRUE(GetsAfter(&first, second));
}

TEST_F(FreePlaceTest, ATurnIsNotCutShort) {
  Place first = Come(1);
  const Place second = Come(2);
  ASSERT_TRUE(Gets(first));
  for (int64_t waited = 0; waited < kTurn; waited += kPause, now_ += kPause) EXPECT_FALSE(GetsAfter(&first, second));
  EXPECT_TRUE(GetsAfter(&first, second));
}

// A stranger begins one connection after the other, a thousand times as often as a peer dials.
TEST_F(FreePlaceTest, AStrangerThatComesAgainAndAgainWaitsForOthers) {
  for (const bool leaves : {false, true}) {
    Place held = Come(1);
    ASSERT_TRUE(Gets(held));
    const Place peer = Come(2);
    EXPECT_FALSE(GetsAfter(&held, peer));
    const int64_t until_ns = now_ + 2 * kTurn;
    bool through = false;
    for (int64_t next_ns = now_ + kPause; !through && now_ < until_ns; now_ += kMillisecond) {
      if (leaves && now_ % kSecond == 0) held.reset();  // To have a turn of its own again.
      Place again = Come(1);
      if (GetsAfter(&held, again)) held = std::move(again);
      if (now_ < next_ns) continue;
      through = GetsAfter(&held, peer);
      next_ns += kPause;
    }
    EXPECT_TRUE(through) << (leaves ? "it leaves" : "it stays");
  }
}

// Who has gone is not waited for.
TEST_F(FreePlaceTest, ASourceThatAsksNoMoreLosesItsTurn) {
  Place first = Come(1);
  ASSERT_TRUE(Gets(first));
  EXPECT_FALSE(Gets(Come(2)));
  first.reset();
  const Place third = Come(3);
  EXPECT_FALSE(Gets(third)) << "it is the second's turn";
  now_ += FreePlace::kWaitsNs;
  EXPECT_TRUE(Gets(third));
}

TEST_F(FreePlaceTest, ManySourcesAreServedInTheirOrder) {
  Place held = Come(1);
  ASSERT_TRUE(Gets(held));
  constexpr int kHosts = 20;
  std::vector<Place> places;
  for (int host = 0; host < kHosts; ++host) {
    places.push_back(Come(10 + host));
    EXPECT_FALSE(Gets(places.back()));
  }
  std::vector<int> served;
  for (int64_t waited = 0; served.size() < kHosts; waited += kPause) {
    ASSERT_LE(waited, (kHosts + 1) * kTurn);
    now_ += kPause;
    // Who asks first from then on is not preferred.
    for (int host = kHosts; --host >= 0;) {
      Place& place = places[static_cast<size_t>(host)];
      if (place == nullptr || !GetsAfter(&held, place)) continue;
      held = std::move(place);
      served.push_back(host);
    }
  }
  for (int i = 0; i < kHosts; ++i) EXPECT_EQ(i, served[static_cast<size_t>(i)]);
}

// The list of those that wait is bounded, and what is in it goes with time.
TEST_F(FreePlaceTest, ACrowdOfSourcesIsForgotten) {
  Place first = Come(1);
  ASSERT_TRUE(Gets(first));
  for (int host = 0; host < 10000; ++host) EXPECT_FALSE(Gets(Come(10 + host)));
  now_ += FreePlace::kWaitsNs;
  first.reset();
  EXPECT_TRUE(Gets(Come(2)));
}

}  // namespace
}  // namespace tcpx
