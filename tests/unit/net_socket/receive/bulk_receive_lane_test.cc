// A receiving lane alone, with an owner that only remembers.
#include "net_socket/receive/bulk_receive_lane.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "net_socket/message/posted_receive.h"
#include "tests/support/fake_lane_owner.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

class BulkReceiveLaneTest : public ::testing::Test {
 protected:
  static constexpr int kLane = 3;

  // Over the loopback device: what was written is there at once.
  void Come(const std::string& bytes) {
    ASSERT_TRUE(WriteAll(pair_.a.get(), bytes));
    for (int i = 0; i < 10; ++i) lane_.Pump();
  }

  TcpPair pair_ = MakeTcpPair();
  FakeOwner owner_;
  PostedReceiveTable table_{4};
  StagePool stages_;
  BulkReceiveLane lane_{&owner_, {pair_.b.get(), kLane}, &table_, &stages_};
  char buffer_[100] = {};
};

TEST_F(BulkReceiveLaneTest, PutsAMessageWhereItWasPosted) {
  PostedReceive* const receive = table_.Post(buffer_, sizeof(buffer_), 0);
  Come(Frame(0, "some words"));
  EXPECT_TRUE(receive->done.load());
  EXPECT_STREQ("some words", buffer_);
  EXPECT_FALSE(lane_.stream().ended());
  ASSERT_EQ(0, shutdown(pair_.a.get(), SHUT_WR));
  lane_.Pump();
  EXPECT_TRUE(lane_.stream().ended());
  EXPECT_FALSE(owner_.failed());
}

// The socket of a lane that its sender has closed goes at once, at both ends.
TEST_F(BulkReceiveLaneTest, ALaneThatRestsLetsItsSocketGo) {
  owner_.loses = true;
  FrameHeader header;
  header.kind = FrameKind::kClose;
  std::string frame(kHeaderBytes, ' ');
  EncodeHeader(header, &frame[0]);
  Come(frame);
  EXPECT_EQ(0, owner_.closed);
  ASSERT_EQ(0, shutdown(pair_.a.get(), SHUT_WR));
  for (int i = 0; i < 10; ++i) lane_.Pump();
  EXPECT_EQ(1, owner_.closed);
  EXPECT_EQ(0, owner_.lost);
  EXPECT_FALSE(owner_.failed());
  char byte;
  EXPECT_EQ(0, recv(pair_.a.get(), &byte, 1, 0));
  EXPECT_EQ(-1, recv(pair_.b.get(), &byte, 1, MSG_DONTWAIT));
  EXPECT_EQ(ENOTCONN, errno);
}

// The dialler may have given it up before it was answered.
TEST_F(BulkReceiveLaneTest, ALaneThatWasOpenedAndNeverUsedIsNotLost) {
  owner_.loses = true;
  ReceiveStream::Settings settings;
  settings.fd = pair_.b.get();
  settings.lane = kLane;
  for (const bool opened : {true, false}) {
    TcpPair pair = MakeTcpPair();
    settings.fd = pair.b.get();
    settings.opened = opened;
    BulkReceiveLane lane(&owner_, settings, &table_, &stages_);
    opened ? pair.a.reset() : ResetSocket(std::move(pair.a));
    for (int i = 0; i < 10; ++i) lane.Pump();
    EXPECT_EQ(1, owner_.closed);
    EXPECT_EQ(opened ? 0 : 1, owner_.lost);
  }
  TcpPair reset = MakeTcpPair();
  settings.fd = reset.b.get();
  settings.opened = true;
  BulkReceiveLane lane(&owner_, settings, &table_, &stages_);
  ResetSocket(std::move(reset.a));
  for (int i = 0; i < 10; ++i) lane.Pump();
  EXPECT_EQ(2, owner_.closed);
}

TEST_F(BulkReceiveLaneTest, TakesNothingWhileItsOwnerIsFailing) {
  PostedReceive* const receive = table_.Post(buffer_, sizeof(buffer_), 0);
  owner_.MoveTo(ConnectionState::kFailing);
  Come(Frame(0, "some words"));
  EXPECT_FALSE(receive->done.load());
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
  PageBuffer stage = stages_.Take();
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

TEST_F(BulkReceiveLaneTest, IsIdleAfterReadsInVainButNotInTheMiddleOfAMessage) {
  const auto pump = [this] {
    for (int i = 0; i < 100; ++i) lane_.Pump();
  };
  EXPECT_FALSE(lane_.idle());
  pump();
  EXPECT_TRUE(lane_.idle());
  table_.Post(buffer_, sizeof(buffer_), 0);
  const std::string frame = Frame(0, "in two parts");
  Come(frame.substr(0, kHeaderBytes + 6));
  pump();
  EXPECT_FALSE(lane_.idle());
  Come(frame.substr(kHeaderBytes + 6));
  EXPECT_FALSE(lane_.idle());
  pump();
  EXPECT_TRUE(lane_.idle());
  SocketOffer offer;
  TcpPair next = MakeTcpPair();
  offer.fd = next.b.get();
  offer.done = [](uint64_t) {};
  ASSERT_TRUE(lane_.Replace(std::move(offer)).ok());
  EXPECT_FALSE(lane_.idle()) << "another socket brings what was sent again";
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
