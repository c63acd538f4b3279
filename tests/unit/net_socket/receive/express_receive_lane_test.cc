// Lane 0 of a receiving end alone: what has come and what was said survive its sockets.
#include "net_socket/receive/express_receive_lane.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "net_socket/message/posted_receive.h"
#include "tests/support/fake_lane_owner.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

constexpr size_t kCreditBytes = kHeaderBytes + sizeof(int32_t);

class ExpressReceiveLaneTest : public ::testing::Test {
 protected:
  static ExpressReceiveLane::Settings SettingsOf(int fd) {
    ExpressReceiveLane::Settings settings;
    settings.fd = fd;
    settings.heals = true;
    settings.announces = true;
    return settings;
  }

  void SetUp() override { owner_.loses = true; }

  void Pump() {
    for (int i = 0; i < 10; ++i) lane_.Pump(*receive_);
  }
  // Over the loopback device: what was written is there at once.
  void Come(const std::string& bytes) {
    ASSERT_TRUE(WriteAll(peer_.get(), bytes));
    Pump();
  }
  void Announce(int32_t tag) { lane_.Announce(announced_++, &tag, 1); }
  // The peer dials again; it has taken so many bytes of what this end said. Returns what it is answered.
  uint64_t Resume(uint64_t position) {
    TcpPair next = MakeTcpPair();
    uint64_t taken = ~uint64_t{0};
    SocketOffer offer;
    offer.fd = next.b.get();
    offer.position = position;
    offer.done = [&taken](uint64_t bytes) { taken = bytes; };
    resumed_ = lane_.Replace(std::move(offer));
    peer_ = std::move(next.a);
    return taken;
  }

  TcpPair pair_ = MakeTcpPair();
  OwnedFd peer_ = std::move(pair_.a);
  FakeOwner owner_;
  PostedReceiveTable table_{4};
  StagePool stages_;
  Seals seals_;
  ExpressReceiveLane lane_{&owner_, SettingsOf(pair_.b.get()), &seals_, &table_, &stages_};
  char buffer_[100] = {};
  PostedReceive* receive_ = table_.Post(buffer_, sizeof(buffer_), 0);
  uint64_t announced_ = 0;
  absl::Status resumed_;
};

TEST_F(ExpressReceiveLaneTest, GoesOnInTheMiddleOfAMessage) {
  const std::string frame = Frame(0, "in two parts");
  Come(frame.substr(0, kHeaderBytes + 6));
  ResetSocket(std::move(peer_));
  Pump();
  EXPECT_TRUE(lane_.stream().lost());
  EXPECT_FALSE(lane_.stream().lost_by_end());
  EXPECT_EQ(1, owner_.lost);
  EXPECT_EQ(kHeaderBytes + 6, Resume(0));
  EXPECT_TRUE(resumed_.ok()) << resumed_;
  EXPECT_FALSE(lane_.stream().lost());
  Come(frame.substr(kHeaderBytes + 6));
  EXPECT_TRUE(receive_->done.load());
  EXPECT_STREQ("in two parts", buffer_);
  EXPECT_FALSE(owner_.failed());
}

// The peer has had the first of two groups, and half of the second; a third was announced while the lane had no socket.
TEST_F(ExpressReceiveLaneTest, WhatThePeerHasNotHadIsSaidAgain) {
  Announce(1);
  Announce(2);
  const std::string two = ReadAvailable(peer_.get());
  ASSERT_EQ(2 * kCreditBytes, two.size());
  ASSERT_EQ(0, shutdown(peer_.get(), SHUT_WR));
  Pump();
  EXPECT_TRUE(lane_.stream().lost_by_end());
  Announce(3);
  EXPECT_EQ("", ReadAvailable(peer_.get()));
  constexpr size_t kHad = kCreditBytes * 3 / 2;
  (void)Resume(kHad);
  EXPECT_TRUE(resumed_.ok()) << resumed_;
  const std::string rest = ReadAvailable(peer_.get());
  ASSERT_EQ(3 * kCreditBytes - kHad, rest.size());
  EXPECT_EQ(two.substr(kHad), rest.substr(0, kCreditBytes / 2));
  FrameHeader third;
  EXPECT_EQ(nullptr, DecodeHeader(rest.data() + kCreditBytes / 2, &third));
  EXPECT_EQ(FrameKind::kCredit, third.kind);
  EXPECT_EQ(2u, third.sequence);
}

TEST_F(ExpressReceiveLaneTest, APeerThatHasHadMoreThanWasSaidIsRefused) {
  Announce(1);
  (void)Resume(kCreditBytes + 1);
  EXPECT_TRUE(absl::IsUnavailable(resumed_)) << resumed_;
}

// The kernel tells of a reset once: here to the send of a credit, and the next read finds an end.
TEST_F(ExpressReceiveLaneTest, AResetThatACreditMeetsIsNoEnd) {
  ResetSocket(std::move(peer_));
  Announce(1);
  Pump();
  EXPECT_TRUE(lane_.stream().lost());
  EXPECT_FALSE(lane_.stream().lost_by_end());
}

// No other socket comes any more: what the last one ended with counts.
TEST_F(ExpressReceiveLaneTest, ALossWithoutAnotherSocketIsTheEnd) {
  Come(Frame(0, "in two parts").substr(0, kHeaderBytes + 6));
  peer_.reset();
  Pump();
  EXPECT_TRUE(lane_.stream().lost());
  EXPECT_FALSE(lane_.stream().ended());
  EXPECT_FALSE(owner_.failed());
  owner_.loses = false;
  Pump();
  EXPECT_TRUE(lane_.stream().ended());
  EXPECT_EQ(0, owner_.lane);
  EXPECT_TRUE(absl::IsUnavailable(owner_.status)) << owner_.status;
}

TEST_F(ExpressReceiveLaneTest, AnErrorIsTheLastThatItSays) {
  lane_.records().SendError("why");
  const std::string record = ReadAvailable(peer_.get());
  ASSERT_EQ(kHeaderBytes + 3, record.size());
  FrameHeader header;
  EXPECT_EQ(nullptr, DecodeHeader(record.data(), &header));
  EXPECT_EQ(FrameKind::kError, header.kind);
  EXPECT_EQ("why", record.substr(kHeaderBytes));
  char byte;
  EXPECT_EQ(0, recv(peer_.get(), &byte, 1, 0));
}

}  // namespace
}  // namespace tcpx
