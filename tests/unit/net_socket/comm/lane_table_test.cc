#include "net_socket/comm/lane_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace tcpx {
namespace {

using Loss = LaneTable::Loss;
using Why = LaneTable::Why;

const std::vector<bool> kThreeOfFour = {true, true, true, false};

TEST(LaneTableTest, BeginsWithTheSocketsThatThereAre) {
  const LaneTable lanes(Direction::kSend, kThreeOfFour);
  EXPECT_EQ(LaneState::kUp, lanes.state(0));
  EXPECT_EQ(LaneState::kNone, lanes.state(3));
  EXPECT_TRUE(lanes.absent(3));
  EXPECT_FALSE(lanes.AnyLost());
  EXPECT_EQ(0, lanes.none_since_ns());
}

TEST(LaneTableTest, OnlyTheFirstLossOfALaneCounts) {
  LaneTable lanes(Direction::kSend, kThreeOfFour);
  EXPECT_EQ(Loss::kNoted, lanes.Lose(1, Why::kDied, 50));
  EXPECT_EQ(Loss::kKnown, lanes.Lose(1, Why::kLetGo, 60));
  EXPECT_EQ(50, lanes.lost_since_ns(1));
  EXPECT_EQ(1u, lanes.tally().lost);
  EXPECT_EQ(0u, lanes.tally().moved);
  lanes.Back(1);
  EXPECT_EQ(0, lanes.lost_since_ns(1));
  EXPECT_FALSE(lanes.TakeOpened(1)) << "it is resumed";
  EXPECT_EQ(1u, lanes.tally().resumed);
  EXPECT_EQ(Loss::kNoted, lanes.Lose(1, Why::kLetGo, 70));
  EXPECT_EQ(1u, lanes.tally().moved);
}

TEST(LaneTableTest, KnowsSinceWhenNoLaneIsUp) {
  LaneTable lanes(Direction::kSend, {true, true});
  (void)lanes.Lose(0, Why::kDied, 100);
  EXPECT_EQ(0, lanes.none_since_ns());
  (void)lanes.Lose(1, Why::kDied, 200);
  EXPECT_EQ(200, lanes.none_since_ns());
  lanes.Back(0);
  EXPECT_EQ(0, lanes.none_since_ns());
}

TEST(LaneTableTest, OpensALaneThatNeverHadASocket) {
  LaneTable lanes(Direction::kSend, kThreeOfFour);
  EXPECT_EQ(Loss::kKnown, lanes.Lose(3, Why::kDied, 10)) << "there is nothing to lose";
  lanes.Back(3);
  EXPECT_TRUE(lanes.up(3));
  EXPECT_TRUE(lanes.TakeOpened(3));
  EXPECT_EQ(1u, lanes.tally().added);
  EXPECT_EQ(0u, lanes.tally().resumed);
}

TEST(LaneTableTest, ASendersLaneThatIsClosedMayBeOpenedAgain) {
  LaneTable lanes(Direction::kSend, kThreeOfFour);
  EXPECT_TRUE(lanes.Close(1, 10));
  EXPECT_EQ(LaneState::kClosed, lanes.state(1));
  EXPECT_TRUE(lanes.absent(1));
  lanes.Back(1);
  EXPECT_TRUE(lanes.TakeOpened(1));
  EXPECT_EQ(1u, lanes.tally().dropped);
}

TEST(LaneTableTest, ASenderKeepsItsLastLane) {
  LaneTable lanes(Direction::kSend, {true, true});
  (void)lanes.Lose(0, Why::kDied, 1);
  EXPECT_FALSE(lanes.Close(1, 2));
  EXPECT_TRUE(lanes.up(1));
}

TEST(LaneTableTest, AReceiverClosesWhateverItsSenderHasClosed) {
  LaneTable lanes(Direction::kReceive, {true, true});
  (void)lanes.Lose(0, Why::kDied, 1);
  EXPECT_TRUE(lanes.Close(1, 2));
  EXPECT_EQ(LaneState::kClosed, lanes.state(1));
  EXPECT_FALSE(lanes.Close(0, 2)) << "it is lost";
}

TEST(LaneTableTest, OrdersHoldForALaneThatIsUp) {
  LaneTable lanes(Direction::kSend, kThreeOfFour);
  EXPECT_TRUE(lanes.OrderMove(1));
  EXPECT_EQ(LaneState::kMoving, lanes.state(1));
  EXPECT_TRUE(lanes.NoteUnheard(1));
  EXPECT_TRUE(lanes.NoteUnheard(1)) << "said twice";
  EXPECT_EQ(LaneState::kUnheard, lanes.state(1));
  lanes.CancelMove(1);
  EXPECT_EQ(LaneState::kUnheard, lanes.state(1)) << "that was no order";
  EXPECT_TRUE(lanes.OrderMove(1));
  lanes.CancelMove(1);
  EXPECT_EQ(LaneState::kUp, lanes.state(1));
  (void)lanes.Lose(1, Why::kDied, 5);
  EXPECT_FALSE(lanes.OrderMove(1));
  EXPECT_FALSE(lanes.NoteUnheard(1));
  EXPECT_TRUE(lanes.lost(1));
}

// What was lost before stays lost: it does not come back, and the connection must know.
TEST(LaneTableTest, NothingIsLostOnceThePeerHasLeft) {
  LaneTable lanes(Direction::kSend, kThreeOfFour);
  (void)lanes.Lose(2, Why::kDied, 1);
  EXPECT_TRUE(lanes.PeerLeft({1, 2, 3, 4}));
  EXPECT_FALSE(lanes.heals());
  EXPECT_EQ((std::vector<uint64_t>{1, 2, 3, 4}), lanes.TakenAtEnd());
  EXPECT_EQ(Loss::kRefused, lanes.Lose(1, Why::kDied, 2));
  EXPECT_TRUE(lanes.WithLanes([] {}));
}

TEST(LaneTableTest, NobodyReachesTheLanesOfAnEndThatHasClosed) {
  LaneTable lanes(Direction::kSend, kThreeOfFour);
  lanes.End();
  EXPECT_FALSE(lanes.heals());
  EXPECT_FALSE(lanes.peer_left());
  EXPECT_FALSE(lanes.WithLanes([] { FAIL(); }));
  EXPECT_FALSE(lanes.Close(1, 1));
}

TEST(LaneTableTest, AWordOfTheWrongLengthSaysNothing) {
  LaneTable lanes(Direction::kSend, kThreeOfFour);
  EXPECT_FALSE(lanes.PeerLeft({7}));
  EXPECT_TRUE(lanes.TakenAtEnd().empty());
}

}  // namespace
}  // namespace tcpx
