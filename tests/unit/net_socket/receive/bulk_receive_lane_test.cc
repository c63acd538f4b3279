// A receiving lane alone, with an owner that only remembers.
#include "net_socket/receive/bulk_receive_lane.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

class FakeOwner final : public LaneOwner {
 public:
  void FailLane(absl::Status why, int which) override {
    status = std::move(why);
    lane = which;
    MoveTo(ConnectionState::kFailed);
  }

  absl::Status status;
  int lane = 0;
};

std::string Frame(uint64_t sequence, const std::string& payload) {
  FrameHeader header;
  header.length = static_cast<uint32_t>(payload.size());
  header.sequence = sequence;
  header.message_bytes = payload.size();
  std::string frame(kHeaderBytes, ' ');
  EncodeHeader(header, &frame[0]);
  return frame + payload;
}

class BulkReceiveLaneTest : public ::testing::Test {
 protected:
  static constexpr int kLane = 3;

  // Of the loopback device: what was written is there at once.
  void Come(const std::string& bytes) {
    ASSERT_TRUE(WriteAll(pair_.a.get(), bytes));
    for (int i = 0; i < 10; ++i) lane_.Pump();
  }

  TcpPair pair_ = MakeTcpPair();
  FakeOwner owner_;
  PostedReceiveTable table_{4};
  StagePool stages_;
  BulkReceiveLane lane_{&owner_, pair_.b.get(), kLane, &table_, &stages_};
  char buffer_[100] = {};
};

TEST_F(BulkReceiveLaneTest, PutsAMessageWhereItWasPosted) {
  PostedReceive* const receive = table_.Post(buffer_, sizeof(buffer_), 0);
  Come(Frame(0, "some words"));
  EXPECT_TRUE(receive->done.load());
  EXPECT_STREQ("some words", buffer_);
  EXPECT_FALSE(lane_.ended());
  ASSERT_EQ(0, shutdown(pair_.a.get(), SHUT_WR));
  lane_.Pump();
  EXPECT_TRUE(lane_.ended());
  EXPECT_FALSE(owner_.failed());
}

TEST_F(BulkReceiveLaneTest, WaitsForTheReceiveOfAMessage) {
  Come(Frame(0, "early"));
  EXPECT_FALSE(owner_.failed());
  PostedReceive* const receive = table_.Post(buffer_, sizeof(buffer_), 0);
  for (int i = 0; i < 10; ++i) lane_.Pump();
  EXPECT_TRUE(receive->done.load());
  EXPECT_STREQ("early", buffer_);
}

TEST_F(BulkReceiveLaneTest, KeepsNoStagingWhileTheRestOfItsPayloadIsAwaited) {
  Stage stage = stages_.Take();
  const char* const only = stage.get();
  stages_.Give(std::move(stage));
  PayloadRoute way;
  way.flag_lines = true;
  PostedReceive* const receive = table_.Post(buffer_, sizeof(buffer_), 0, nullptr, way);
  const std::string frame = Frame(0, "in two parts");
  Come(frame.substr(0, kHeaderBytes + 6));
  EXPECT_FALSE(receive->done.load());
  stage = stages_.Take();
  EXPECT_EQ(only, stage.get());
  stages_.Give(std::move(stage));
  Come(frame.substr(kHeaderBytes + 6));
  EXPECT_TRUE(receive->done.load());
  EXPECT_STREQ("in two parts", buffer_);
}

TEST_F(BulkReceiveLaneTest, TellsItsOwnerOfGarbage) {
  Come(std::string(kHeaderBytes, '\xff'));
  EXPECT_TRUE(absl::IsUnavailable(owner_.status)) << owner_.status;
  EXPECT_EQ(kLane, owner_.lane);
}

TEST_F(BulkReceiveLaneTest, ReadsNothingOnceItsOwnerHasFailed) {
  owner_.FailLane(absl::UnavailableError("another lane"), 1);
  PostedReceive* const receive = table_.Post(buffer_, sizeof(buffer_), 0);
  Come(Frame(0, "late"));
  EXPECT_FALSE(receive->done.load());
  EXPECT_EQ(1, owner_.lane);
}

}  // namespace
}  // namespace tcpx
