// Every pair of states, and what an owner of lanes makes of them.

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "net_socket/message/lane_owner.h"

namespace tcpx {
namespace {

constexpr ConnectionState kAll[] = {ConnectionState::kOpen, ConnectionState::kFailing, ConnectionState::kFailed,
                                    ConnectionState::kClosed};

class Owner final : public LaneOwner {
 public:
  void FailLane(absl::Status, int) override { MoveTo(ConnectionState::kFailed); }
  bool LoseLane(const absl::Status&, int) override { return false; }
  void LaneBack(int) override {}
  bool CloseLane(int) override { return false; }
  bool heals() const override { return false; }
  bool peer_left() const override { return false; }
  using LaneOwner::MoveTo;

  // Not through a move that is not legal: from open every state can be entered at once.
  explicit Owner(ConnectionState first) {
    if (first != ConnectionState::kOpen) MoveTo(first);
  }
};

TEST(ConnectionStateTest, EveryPairIsLegalOrNot) {
  using Pair = std::pair<ConnectionState, ConnectionState>;
  const std::set<Pair> legal = {
      {ConnectionState::kOpen, ConnectionState::kFailing},   {ConnectionState::kOpen, ConnectionState::kFailed},
      {ConnectionState::kOpen, ConnectionState::kClosed},    {ConnectionState::kFailing, ConnectionState::kFailed},
      {ConnectionState::kFailing, ConnectionState::kClosed}, {ConnectionState::kFailed, ConnectionState::kClosed}};
  for (ConnectionState from : kAll) {
    for (ConnectionState to : kAll) {
      const bool may = legal.count({from, to}) > 0;
      EXPECT_EQ(may, MayMove(from, to)) << static_cast<int>(from) << " to " << static_cast<int>(to);
      if (!may) continue;
      Owner owner(from);
      owner.MoveTo(to);
      EXPECT_EQ(to, owner.state());
      EXPECT_EQ(to == ConnectionState::kFailed, owner.failed());
      EXPECT_EQ(to == ConnectionState::kOpen, owner.open());
    }
  }
}

#ifdef TCPX_DCHECKS
TEST(ConnectionStateDeathTest, AnIllegalMoveAborts) {
  for (ConnectionState from : kAll) {
    for (ConnectionState to : kAll) {
      if (MayMove(from, to)) continue;
      EXPECT_DEATH(Owner(from).MoveTo(to), "does not hold: MayMove");
    }
  }
}
#endif

}  // namespace
}  // namespace tcpx
