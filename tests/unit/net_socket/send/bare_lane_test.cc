// With TCPX_ENCRYPT a sending lane without keys says nothing.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "common/socket.h"
#include "net_socket/seal/seals.h"
#include "net_socket/send/bulk_send_lane.h"
#include "net_socket/send/busy_lanes.h"
#include "net_socket/send/lane_rates.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_lane_owner.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

class BareLaneTest : public ::testing::Test {
 protected:
  BareLaneTest() {
    BulkSendLane::Settings settings;
    settings.fd = pair_.a.get();
    settings.pace.chunk_bytes = 512 << 10;
    settings.pace.chunk_bytes_min = 64 << 10;
    settings.heals = true;
    settings.seals = true;
    lane_ = std::make_unique<BulkSendLane>(&owner_, settings, &striper_, &rates_, &idle_, &busy_);
    request_.data = payload_.data();
    request_.bytes = request_.message_bytes = payload_.size();
    request_.left.store(Units(payload_.size()));
  }

  void ExpectThatNothingWasSaid() {
    EXPECT_EQ(absl::StatusCode::kInternal, owner_.status.code());
    EXPECT_NE(std::string::npos, owner_.status.message().find("has no keys")) << owner_.status;
    EXPECT_EQ("", ReadAvailable(pair_.b.get()));
    EXPECT_FALSE(request_.done());
  }

  FakeOwner owner_;
  Striper striper_{4, 512 << 10};
  LaneRates rates_{LaneRates::Settings{}};
  IdleLanes idle_{1};
  BusyLanes busy_;
  TcpPair pair_ = MakeTcpPair();
  const std::string payload_ = std::string(10000, 'p');
  SendRequest request_;
  std::unique_ptr<BulkSendLane> lane_;
};

TEST_F(BareLaneTest, SaysNothingToItsCaller) {
  striper_.Post(&request_);
  for (int i = 0; i < 3; ++i) lane_->Pump();
  ExpectThatNothingWasSaid();
}

TEST_F(BareLaneTest, SaysNothingInAPool) {
  ProgressPool pool;
  ASSERT_TRUE(pool.Start(EngineChoice::kEpoll, 1, {}, 0).ok());
  idle_.Enter(0, lane_.get());
  pool.Attach(lane_.get());
  striper_.Post(&request_);
  idle_.WakeOne();
  for (const Deadline deadline(10); !owner_.failed() && deadline.Yield();) {
  }
  idle_.Close();
  ProgressPool::Detach(lane_.get());
  pool.Stop();
  ExpectThatNothingWasSaid();
}

// One that was closed has no keys any more, and its next socket brings none.
TEST_F(BareLaneTest, SaysNothingOnceItWasClosed) {
  const Encryption encryption({CipherSuite::kChaCha20Poly1305});
  lane_->stream().SealBy(std::move(encryption.Make(CipherSuite::kChaCha20Poly1305, Key32(), Key32()).sealer));
  auto none = StreamSocket(AF_INET);
  ASSERT_TRUE(none.ok());
  SocketOffer close;
  close.fd = none->get();
  close.closes = true;
  close.done = [](uint64_t) {};
  ASSERT_TRUE(lane_->Replace(std::move(close)).ok());
  TcpPair bare = MakeTcpPair();
  SocketOffer offer;
  offer.fd = bare.a.get();
  offer.done = [](uint64_t) {};
  ASSERT_TRUE(lane_->Replace(std::move(offer)).ok());
  striper_.Post(&request_);
  for (int i = 0; i < 3; ++i) lane_->Pump();
  EXPECT_EQ("", ReadAvailable(bare.b.get()));
  ExpectThatNothingWasSaid();
}

}  // namespace
}  // namespace tcpx
