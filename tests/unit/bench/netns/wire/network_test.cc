#include "bench/netns/wire/network.h"

#include <algorithm>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/netns/wire/checksum.h"
#include "gtest/gtest.h"
#include "tests/unit/bench/netns/wire/samples.h"

namespace tcpx {
namespace wire {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
constexpr int64_t kSoon = 1000000000000;

Settings Make(const std::vector<std::pair<const char*, const char*>>& words) {
  Settings settings;
  for (const auto& [key, value] : words) EXPECT_TRUE(SetEverywhere(key, value, &settings).ok()) << key;
  return settings;
}

class NetworkTest : public testing::Test {
 protected:
  void Start(const std::vector<std::pair<const char*, const char*>>& words) {
    network_ = std::make_unique<Network>(2, Make(words), 1);
  }
  void Arrive(int64_t now, size_t segments = 1, uint16_t port = 4000) {
    const Frame frame = SampleFrame(false, segments * kSampleSegment, port, &pool_);
    network_->Arrive(1, frame, *ParsePacket(frame.data.get(), frame.bytes), now, now);
  }
  // The sequence numbers of all segments that come out, in order.
  std::vector<uint32_t> Drain() {
    std::vector<uint32_t> sequences;
    Departure departure;
    while (network_->Depart(kSoon, &departure)) {
      size_t bytes = 0;
      const Bytes written = Written(departure.piece, &bytes);
      const uint32_t first = Read32(written.get() + 24) - kSampleSequence;
      for (int i = 0; i < departure.piece.segments; ++i) {
        sequences.push_back(first + static_cast<uint32_t>(i * kSampleSegment));
      }
    }
    return sequences;
  }
  Counters Sum() const {
    Counters sum;
    for (size_t path = 0; path < network_->paths(); ++path) {
      const Counters& c = network_->counters(1, path);
      sum.flows += c.flows;
      sum.segments += c.segments;
      sum.lost += c.lost;
      sum.late += c.late;
      sum.full += c.full;
      sum.cut += c.cut;
    }
    return sum;
  }

  BufferPool pool_;
  std::unique_ptr<Network> network_;
};

TEST_F(NetworkTest, DelaysEveryPacket) {
  Start({{"delay", "50us"}});
  EXPECT_EQ(network_->NextDue(), kNever);
  Arrive(1000);
  EXPECT_EQ(network_->NextDue(), 51000);
  Departure departure;
  EXPECT_FALSE(network_->Depart(50999, &departure));
  EXPECT_TRUE(network_->Depart(51000, &departure));
  EXPECT_EQ(departure.to, 1);
  EXPECT_EQ(network_->NextDue(), kNever);
}

TEST_F(NetworkTest, RateSpacesPackets) {
  Start({{"rate", "12M"}});  // 1500 bytes a millisecond
  Arrive(1000);
  Arrive(1000);
  EXPECT_EQ(network_->NextDue(), 1001000);
  Departure departure;
  ASSERT_TRUE(network_->Depart(1001000, &departure));
  EXPECT_EQ(network_->NextDue(), 2001000);
}

TEST_F(NetworkTest, FrameTakesAPathOnlySoLongAtOnce) {
  Start({{"rate", "12M"}, {"piece", "2ms"}});
  Arrive(1000, 5);
  Departure departure;
  std::vector<int> pieces;
  while (network_->Depart(kSoon, &departure)) pieces.push_back(departure.piece.segments);
  EXPECT_EQ(pieces, (std::vector<int>{2, 2, 1}));
}

TEST_F(NetworkTest, FullQueueTakesTheFirstSegmentsThatFit) {
  Start({{"rate", "1200M"}, {"queue", "15000"}, {"piece", "1ms"}});
  Arrive(1000, 4);
  Arrive(1000, 10);
  EXPECT_EQ(Sum().full, 4);
  EXPECT_EQ(Drain().size(), 10);
}

TEST_F(NetworkTest, LossHitsSingleSegmentsOfAFrame) {
  Start({{"loss", "5%"}});
  for (int i = 0; i < 250; ++i) Arrive(i, 40);
  const size_t passed = Drain().size();
  EXPECT_NEAR(static_cast<double>(Sum().lost), 500, 100);
  EXPECT_EQ(passed + Sum().lost, 250 * 40);
}

TEST_F(NetworkTest, SameSeedLosesTheSame) {
  std::vector<uint32_t> before;
  for (int run = 0; run < 2; ++run) {
    Start({{"loss", "10%"}, {"loss-run", "3"}, {"reorder", "5%"}});
    for (int i = 0; i < 20; ++i) Arrive(i, 40);
    const std::vector<uint32_t> now = Drain();
    if (run == 1) {
      EXPECT_EQ(now, before);
    }
    before = now;
  }
}

TEST_F(NetworkTest, LateSegmentsAreOvertakenAndNoneIsMissing) {
  Start({{"reorder", "20%"}, {"reorder-by", "10us"}});
  Arrive(1000, 40);
  const std::vector<uint32_t> got = Drain();
  EXPECT_FALSE(std::is_sorted(got.begin(), got.end()));
  EXPECT_EQ(std::set<uint32_t>(got.begin(), got.end()).size(), 40);
  EXPECT_GT(Sum().late, 0);
}

TEST_F(NetworkTest, JitterKeepsTheOrder) {
  Start({{"delay", "100us"}, {"jitter", "90us"}, {"rate", "10G"}, {"piece", "1us"}});
  Arrive(1000, 40);
  const std::vector<uint32_t> got = Drain();
  EXPECT_EQ(got.size(), 40);
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
}

TEST_F(NetworkTest, FlowsSpreadOverPathsAndStay) {
  Start({{"paths", "4"}});
  for (int round = 0; round < 2; ++round) {
    for (uint16_t port = 4000; port < 4064; ++port) Arrive(1000, 1, port);
  }
  EXPECT_EQ(Sum().flows, 64);
  for (size_t path = 0; path < 4; ++path) EXPECT_GE(network_->counters(1, path).flows, 5) << path;
}

TEST_F(NetworkTest, EachFlowHasARateOfItsOwn) {
  Start({{"flow-rate", "12M"}});
  Arrive(1000, 1, 4000);
  Arrive(1000, 1, 4001);
  Departure departure;
  EXPECT_TRUE(network_->Depart(1001000, &departure));
  EXPECT_TRUE(network_->Depart(1001000, &departure));
  Arrive(1000, 1, 4000);
  EXPECT_FALSE(network_->Depart(2000999, &departure));
  EXPECT_TRUE(network_->Depart(2001000, &departure));
}

TEST_F(NetworkTest, PathHoldsAfterTheFlowsRate) {
  Start({{"flow-rate", "12M"}, {"rate", "6M"}, {"delay", "1ms"}});
  Arrive(0);
  Departure departure;
  EXPECT_FALSE(network_->Depart(3999999, &departure));
  EXPECT_TRUE(network_->Depart(4000000, &departure));
}

TEST_F(NetworkTest, CutLosesWhatIsUnderWayAndWhatComes) {
  Start({{"delay", "50us"}});
  Arrive(1000, 3);
  network_->Change(Make({{"delay", "50us"}, {"cut", "on"}}));
  Arrive(2000);
  EXPECT_TRUE(Drain().empty());
  EXPECT_EQ(Sum().cut, 4);
  network_->Change(Make({{"delay", "50us"}}));
  Arrive(3000);
  EXPECT_EQ(Drain().size(), 1);
}

TEST_F(NetworkTest, FewerPathsLoseWhatIsUnderWayOnTheOthers) {
  Start({{"paths", "8"}, {"delay", "50us"}});
  for (uint16_t port = 4000; port < 4064; ++port) Arrive(1000, 1, port);
  network_->Change(Make({{"delay", "50us"}}));
  const size_t passed = Drain().size();
  EXPECT_EQ(passed + Sum().cut, 64);
  EXPECT_LT(passed, 64);
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
