// A sending lane alone, with an owner that only remembers.
#include "net_socket/send/bulk_send_lane.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/send/busy_lanes.h"
#include "net_socket/send/lane_rates.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_lane_owner.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

class BulkSendLaneTest : public ::testing::Test {
 protected:
  static constexpr int kLane = 3;

  BulkSendLaneTest() : lane_(&owner_, SettingsFor(pair_.a.get()), &striper_, &rates_, &idle_, &busy_) {
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
    settings.pace.by_rate = false;
    settings.pace.chunk_bytes = 512 << 10;
    settings.pace.chunk_bytes_min = 64 << 10;
    return settings;
  }

  TcpPair pair_ = MakeTcpPair();
  FakeOwner owner_;
  Striper striper_{4, 512 << 10};
  LaneRates rates_{LaneRates::Settings{{kLane, kLane}}};
  IdleLanes idle_{kLane};
  BusyLanes busy_;
  BulkSendLane lane_;
  const std::string payload_ = std::string(10000, 'p');
  SendRequest request_;
};

TEST_F(BulkSendLaneTest, SendsAChunkAfterItsHeader) {
  striper_.Post(&request_);
  lane_.Pump();
  EXPECT_TRUE(request_.done());
  EXPECT_EQ(kHeaderBytes + payload_.size(), lane_.stream().counts().bytes.get());
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

TEST_F(BulkSendLaneTest, SendsNothingWhileItsOwnerIsFailing) {
  owner_.MoveTo(ConnectionState::kFailing);
  striper_.Post(&request_);
  lane_.Pump();
  EXPECT_EQ("", ReadAvailable(pair_.b.get()));
}

// Two lanes between hosts; the pilot has paused the second: what waits goes by the first.
TEST(PausedLaneTest, TakesNoChunk) {
  FakeOwner owner;
  Striper striper(4, 512 << 10);
  LaneRates rates(LaneRates::Settings{{2, 2}, true});
  IdleLanes idle(2);
  BusyLanes busy;
  // One path of 100 MB/s, long ago, which a lane fills.
  uint64_t acked[2] = {};
  for (int64_t now = kSecond; now < 4 * kSecond; now += kMillisecond) {
    const int carrying = (rates.Carries(0) ? 1 : 0) + (rates.Carries(1) ? 1 : 0);
    for (int lane = 0; lane < 2; ++lane) {
      if (rates.Carries(lane)) acked[lane] += 100'000 / static_cast<uint64_t>(carrying);
      LaneRates::Seen seen;
      seen.acked = acked[lane];
      rates.Looked(lane, now, seen);
    }
  }
  ASSERT_TRUE(rates.Carries(0));
  ASSERT_FALSE(rates.Carries(1));
  const std::string payload(10000, 'p');
  SendRequest request;
  request.data = payload.data();
  request.bytes = request.message_bytes = payload.size();
  request.left.store(Units(payload.size()));
  TcpPair pairs[2] = {MakeTcpPair(), MakeTcpPair()};
  std::unique_ptr<BulkSendLane> lanes[2];
  for (int i = 0; i < 2; ++i) {
    BulkSendLane::Settings settings;
    settings.fd = pairs[i].a.get();
    settings.lane = i + 1;
    settings.pace.chunk_bytes = 512 << 10;
    settings.pace.chunk_bytes_min = 64 << 10;
    lanes[i] = std::make_unique<BulkSendLane>(&owner, settings, &striper, &rates, &idle, &busy);
  }
  striper.Post(&request);
  lanes[1]->Pump();
  EXPECT_FALSE(request.done());
  EXPECT_EQ(0u, lanes[1]->stream().counts().bytes.get());
  lanes[0]->Pump();
  EXPECT_TRUE(request.done());
  EXPECT_EQ(payload, ReadAvailable(pairs[0].b.get()).substr(kHeaderBytes));
}

LaneRates::Settings Piloted(int lanes) {
  LaneRates::Settings settings;
  settings.lanes = {lanes, 32, true, 1};
  settings.has_pilot = true;
  return settings;
}

// With TCPX_EXPRESS_BYTES=0 messages of a byte or two go by bulk lanes too: a lane's part of one is less than a byte.
TEST(PilotedLaneTest, SendsAMessageThatIsShorterThanItsLanesAreMany) {
  FakeOwner owner;
  Striper striper(4, 512 << 10);
  LaneRates rates(Piloted(4));
  IdleLanes idle(32);
  BusyLanes busy;
  TcpPair pair = MakeTcpPair();
  BulkSendLane::Settings settings;
  settings.fd = pair.a.get();
  settings.pace.chunk_bytes = 512 << 10;
  settings.pace.chunk_bytes_min = 64 << 10;
  BulkSendLane lane(&owner, settings, &striper, &rates, &idle, &busy);
  for (int lane_of_rate = 0; lane_of_rate < 4; ++lane_of_rate) rates.Set(lane_of_rate, 1000);
  const std::string payload = "p";
  SendRequest request;
  request.data = payload.data();
  request.bytes = request.message_bytes = payload.size();
  request.left.store(Units(payload.size()));
  striper.Post(&request);
  lane.Pump();
  EXPECT_TRUE(request.done());
}

// Below 16 KiB, which is a chunk's least where lanes are piloted.
TEST(PilotedLaneTest, SendsWhereTheShortestChunkIsFourKibibytes) {
  FakeOwner owner;
  Striper striper(4, 512 << 10);
  LaneRates rates(Piloted(4));
  IdleLanes idle(32);
  BusyLanes busy;
  TcpPair pair = MakeTcpPair();
  BulkSendLane::Settings settings;
  settings.fd = pair.a.get();
  settings.pace.chunk_bytes = 4 << 10;
  settings.pace.chunk_bytes_min = 4 << 10;
  BulkSendLane lane(&owner, settings, &striper, &rates, &idle, &busy);
  const std::string payload(10000, 'p');
  SendRequest request;
  request.data = payload.data();
  request.bytes = request.message_bytes = payload.size();
  request.left.store(Units(payload.size()));
  striper.Post(&request);
  std::string got;
  for (const Deadline deadline; !request.done() && deadline.Yield();) {
    lane.Pump();
    got += ReadAvailable(pair.b.get());
  }
  EXPECT_TRUE(request.done());
  EXPECT_LE(2 * kHeaderBytes + payload.size(), lane.stream().counts().bytes.get()) << "in several chunks";
}

// From when it has taken the offer that closes it until it has another socket.
TEST(PilotedLaneTest, AClosedLaneKeepsStill) {
  FakeOwner owner;
  Striper striper(4, 512 << 10);
  LaneRates rates(Piloted(4));
  IdleLanes idle(32);
  BusyLanes busy;
  TcpPair pair = MakeTcpPair();
  BulkSendLane::Settings settings;
  settings.fd = pair.a.get();
  settings.pace.chunk_bytes = 512 << 10;
  settings.pace.chunk_bytes_min = 64 << 10;
  settings.heals = true;
  BulkSendLane lane(&owner, settings, &striper, &rates, &idle, &busy);
  lane.Retire(true);
  for (const Deadline deadline; !lane.drained() && deadline.Yield();) lane.Pump();
  ASSERT_TRUE(lane.drained());
  EXPECT_FALSE(lane.stream().lost());
  auto none = StreamSocket(AF_INET);
  ASSERT_TRUE(none.ok());
  SocketOffer close;
  close.fd = none->get();
  close.closes = true;
  close.done = [](uint64_t) {};
  ASSERT_TRUE(lane.Replace(std::move(close)).ok());
  EXPECT_TRUE(lane.stream().lost());
  lane.Retire(false);
  const std::string payload(10000, 'p');
  SendRequest request;
  request.data = payload.data();
  request.bytes = request.message_bytes = payload.size();
  request.left.store(Units(payload.size()));
  striper.Post(&request);
  for (int i = 0; i < 10; ++i) lane.Pump();
  EXPECT_EQ(kHeaderBytes, lane.stream().counts().bytes.get()) << "the record that says it rests";
  TcpPair next = MakeTcpPair();
  SocketOffer offer;
  offer.fd = next.a.get();
  offer.position = kHeaderBytes;
  offer.done = [](uint64_t) {};
  ASSERT_TRUE(lane.Replace(std::move(offer)).ok());
  EXPECT_FALSE(lane.stream().lost());
  for (const Deadline deadline; !request.done() && deadline.Yield();) lane.Pump();
  EXPECT_EQ(payload, ReadAvailable(next.b.get()).substr(kHeaderBytes));
  EXPECT_FALSE(owner.failed());
}

// Towards another host, with a peer that reads nothing.
class PacedLaneTest : public ::testing::Test {
 protected:
  // How much waits beyond what the peer's window takes, with so many other lanes of the process busy.
  int64_t UnsentBeside(int others) {
    for (int i = 0; i < others; ++i) {
      uint32_t span = 0;
      busy_.Note(MonotonicNanos(), &span);
    }
    TcpPair pair = MakeTcpPair();
    BulkSendLane::Settings settings;
    settings.fd = pair.a.get();
    settings.pace.chunk_bytes = 512 << 10;
    settings.pace.chunk_bytes_min = 64 << 10;
    BulkSendLane lane(&owner_, settings, &striper_, &rates_, &idle_, &busy_);
    SendRequest request;
    request.data = payload_.data();
    request.bytes = request.message_bytes = payload_.size();
    request.left.store(Units(payload_.size()));
    striper_.Post(&request);
    uint64_t before = 0;
    do {
      before = lane.stream().counts().bytes.get();
      lane.Pump();
    } while (lane.stream().counts().bytes.get() > before);
    return UnsentBytes(pair.a.get());
  }

  FakeOwner owner_;
  Striper striper_{4, 512 << 10};
  LaneRates rates_{LaneRates::Settings{}};
  IdleLanes idle_{1};
  BusyLanes busy_;
  const std::string payload_ = std::string(8 << 20, 'p');
};

TEST_F(PacedLaneTest, AloneItHoldsWhatItsPaceAllows) {
  if (getenv("TCPX_TEST_EMULATOR") != nullptr) GTEST_SKIP() << "qemu-user can't say what is unsent";
  EXPECT_GT(UnsentBeside(0), 128 << 10);
}

TEST_F(PacedLaneTest, AmongThousandsOfBusyLanesItHoldsTwoChunksUnsentAtTheMost) {
  EXPECT_LE(UnsentBeside(8000), (128 << 10) + static_cast<int64_t>(kHeaderBytes));
}

// Eight lanes of a pool whose peers read nothing: each takes a chunk or two.
class LanesOfAPoolTest : public ::testing::Test {
 protected:
  static constexpr int kLanes = 8;
  static constexpr size_t kBytes = 128 << 10;

  LanesOfAPoolTest() {
    EXPECT_TRUE(pool_.Start(EngineChoice::kEpoll, 2, {}, 0).ok());
    for (int i = 0; i < kLanes; ++i) {
      pairs_.push_back(MakeTcpPair(16 << 10));
      BulkSendLane::Settings settings;
      settings.fd = pairs_.back().a.get();
      settings.lane = i + 1;
      settings.pace.by_rate = false;
      settings.pace.chunk_bytes = 512 << 10;
      settings.pace.chunk_bytes_min = 64 << 10;
      lanes_.push_back(std::make_unique<BulkSendLane>(&owner_, settings, &striper_, &rates_, &idle_, &busy_));
      idle_.Enter(i, lanes_.back().get());
      pool_.Attach(lanes_.back().get());
    }
  }

  ~LanesOfAPoolTest() override {
    idle_.Close();
    for (auto& lane : lanes_) ProgressPool::Detach(lane.get());
    pool_.Stop();
  }

  void Post(SendRequest* request, size_t bytes) {
    request->data = payload_.data();
    request->bytes = request->message_bytes = bytes;
    request->left.store(Units(bytes));
    striper_.Post(request);
    idle_.WakeOne();
  }

  int Busy() const {
    int busy = 0;
    for (const auto& lane : lanes_) busy += lane->stream().counts().bytes.get() > 0 ? 1 : 0;
    return busy;
  }

  void ExpectAllBusy() {
    Deadline deadline(10);
    while (Busy() < kLanes && deadline.Yield()) {
    }
    EXPECT_EQ(kLanes, Busy());
  }

  FakeOwner owner_;
  Striper striper_{64, 512 << 10};
  LaneRates rates_{LaneRates::Settings{{kLanes, kLanes}}};
  IdleLanes idle_{kLanes};
  BusyLanes busy_;
  const std::string payload_ = std::string(32 * kBytes, 'p');
  SendRequest requests_[32];
  std::vector<TcpPair> pairs_;
  std::vector<std::unique_ptr<BulkSendLane>> lanes_;
  ProgressPool pool_;
};

TEST_F(LanesOfAPoolTest, ManyShortMessagesReachAllLanes) {
  for (SendRequest& request : requests_) Post(&request, kBytes);
  ExpectAllBusy();
}

TEST_F(LanesOfAPoolTest, OneLongMessageWakesAllLanes) {
  Post(&requests_[0], payload_.size());
  ExpectAllBusy();
}

}  // namespace
}  // namespace tcpx
