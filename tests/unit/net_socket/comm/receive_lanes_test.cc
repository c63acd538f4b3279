// The lanes of a receiving end that the calling thread moves.
#include "net_socket/comm/receive_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net_socket/comm/tuning.h"
#include "net_socket/message/posted_receive.h"
#include "tests/support/fake_lane_owner.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/comm/fake_end.h"

namespace tcpx {
namespace {

class ReceiveLanesTest : public ::testing::Test {
 protected:
  static constexpr size_t kBulk = 3 * tuning::kIdleLanesAsked;

  ReceiveLanesTest() {
    for (LaneSocket& lane : setup_.lanes) {
      pairs_.push_back(MakeTcpPair());
      lane.fd = std::move(pairs_.back().b);
    }
    lanes_ = std::make_unique<ReceiveLanes>(&setup_, &owner_, nullptr, &table_);
    for (size_t i = 0; i < kBulk; ++i) posted_.push_back(table_.Post(buffers_[i], sizeof(buffers_[i]), 0));
  }

  void Drive(int times) {
    for (int i = 0; i < times; ++i) lanes_->Drive(never_, true);
  }
  // Over the loopback device: what was written is there at once.
  void SendByEachLane() {
    for (size_t i = 0; i < kBulk; ++i) ASSERT_TRUE(WriteAll(pairs_[1 + i].a.get(), Frame(i, "some words")));
  }
  size_t Landed() const {
    return static_cast<size_t>(
        std::count_if(posted_.begin(), posted_.end(), [](const PostedReceive* one) { return one->done.load(); }));
  }

  const Options options_;
  Runtime runtime_{options_};
  ConnectionSetup setup_ = FakeSetup(&runtime_, nullptr, false, 1 + kBulk);
  std::vector<TcpPair> pairs_;
  FakeOwner owner_;
  PostedReceiveTable table_{16};
  std::unique_ptr<ReceiveLanes> lanes_;
  PostedReceive never_;
  char buffers_[kBulk][100] = {};
  std::vector<PostedReceive*> posted_;
};

TEST_F(ReceiveLanesTest, ReadsAllLanesThatMayHaveSomething) {
  Drive(3);
  SendByEachLane();
  Drive(1);
  EXPECT_EQ(kBulk, Landed());
}

TEST_F(ReceiveLanesTest, AsksIdleLanesByTurns) {
  Drive(100);
  SendByEachLane();
  Drive(1);
  EXPECT_EQ(tuning::kIdleLanesAsked, Landed());
  Drive(2);
  EXPECT_EQ(kBulk, Landed());
  EXPECT_FALSE(owner_.failed());
}

}  // namespace
}  // namespace tcpx
