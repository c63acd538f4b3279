// A sending lane alone, with an owner that only remembers.
#include "net_socket/send/bulk_send_lane.h"

#include <gtest/gtest.h>

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

class BulkSendLaneTest : public ::testing::Test {
 protected:
  static constexpr int kLane = 3;

  BulkSendLaneTest() : lane_(&owner_, SettingsFor(pair_.a.get()), &striper_, &rates_) {
    request_.data = payload_.data();
    request_.bytes = payload_.size();
    request_.message_bytes = payload_.size();
    request_.sequence = 7;
    request_.left.store(Units(payload_.size()));
  }

  static BulkSendLane::Settings SettingsFor(int fd) {
    BulkSendLane::Settings settings;
    settings.fd = fd;
    settings.lane = kLane;
    settings.paced_by_rate = false;
    settings.chunk_bytes = 512 << 10;
    settings.chunk_bytes_min = 64 << 10;
    return settings;
  }

  TcpPair pair_ = MakeTcpPair();
  FakeOwner owner_;
  Striper striper_{4, Striper::Limits()};
  LaneRates rates_{kLane};
  BulkSendLane lane_;
  const std::string payload_ = std::string(10000, 'p');
  SendRequest request_;
};

TEST_F(BulkSendLaneTest, SendsAChunkBehindItsHeader) {
  striper_.Post(&request_);
  lane_.Pump();
  EXPECT_TRUE(request_.done());
  EXPECT_EQ(kHeaderBytes + payload_.size(), lane_.bytes_sent());
  const std::string got = ReadAvailable(pair_.b.get());
  ASSERT_EQ(kHeaderBytes + payload_.size(), got.size());
  FrameHeader header;
  ASSERT_EQ(nullptr, DecodeHeader(got.data(), &header));
  EXPECT_EQ(7u, header.sequence);
  EXPECT_EQ(payload_.size(), header.length);
  EXPECT_EQ(payload_, got.substr(kHeaderBytes));
  EXPECT_FALSE(owner_.failed());
}

TEST_F(BulkSendLaneTest, TellsItsOwnerOfABrokenSocket) {
  ResetSocket(std::move(pair_.b));
  striper_.Post(&request_);
  lane_.Pump();
  EXPECT_TRUE(absl::IsUnavailable(owner_.status)) << owner_.status;
  EXPECT_EQ(kLane, owner_.lane);
  EXPECT_FALSE(request_.done());
}

TEST_F(BulkSendLaneTest, SendsNothingOnceItsOwnerHasFailed) {
  owner_.FailLane(absl::UnavailableError("another lane"), 1);
  striper_.Post(&request_);
  lane_.Pump();
  EXPECT_EQ("", ReadAvailable(pair_.b.get()));
  EXPECT_EQ(1, owner_.lane);
}

}  // namespace
}  // namespace tcpx
