// Reads as they come from a ping-pong, a stream, and what lies between, with a clock of the test's.
#include <gtest/gtest.h>

#include <memory>

#include "net_socket/receive/pattern_tuning.h"

namespace tcpx {
namespace {

constexpr size_t kSmall = 4096;
constexpr size_t kLarge = PatternDetector::kLargePingPongBytes;

class TrafficPatternTest : public ::testing::Test {
 protected:
  TrafficPattern Saw(int messages, bool between_frames, size_t message_bytes) {
    PatternDetector::Read read;
    read.messages = messages;
    read.between_frames = between_frames;
    read.message_bytes = message_bytes;
    return pattern_->Saw(read, [this] {
      ++clock_reads_;
      return now_ns_;
    });
  }

  // A message in three reads, `wait_ns` after the last; each took `read_ns`.
  TrafficPattern InThreeReads(int64_t wait_ns, int64_t read_ns, size_t bytes) {
    now_ns_ += wait_ns;
    Saw(0, false, bytes);
    now_ns_ += read_ns;
    Saw(0, false, bytes);
    now_ns_ += read_ns;
    return Saw(1, true, bytes);
  }

  TrafficPattern Repeat(int times, int64_t wait_ns, int64_t read_ns, size_t bytes) {
    for (int i = 0; i < times; ++i) InThreeReads(wait_ns, read_ns, bytes);
    return pattern_->pattern();
  }

  std::unique_ptr<PatternDetector> pattern_ = std::make_unique<PatternDetector>(true);
  int64_t now_ns_ = 1000000;
  int clock_reads_ = 0;
};

TEST_F(TrafficPatternTest, WholeMessagesOneAReadAreAPingPongAndNeedNoClock) {
  EXPECT_EQ(TrafficPattern::kUnknown, pattern_->pattern());
  for (int i = 1; i < PatternDetector::kScoreMax; ++i) EXPECT_EQ(TrafficPattern::kUnknown, Saw(1, true, kSmall));
  EXPECT_EQ(TrafficPattern::kPingPong, Saw(1, true, kSmall));
  EXPECT_EQ(0, clock_reads_);
}

TEST_F(TrafficPatternTest, SeveralMessagesAReadAreAStream) {
  for (int i = 0; i < PatternDetector::kScoreMax; ++i) Saw(3, true, kSmall);
  EXPECT_EQ(TrafficPattern::kStream, pattern_->pattern());
}

TEST_F(TrafficPatternTest, AReadThatEndsInTheNextMessageIsAStream) {
  for (int i = 0; i <= PatternDetector::kScoreMax; ++i) Saw(1, false, kLarge);
  EXPECT_EQ(TrafficPattern::kStream, pattern_->pattern());
}

// The answer takes as long as the message: 30 us of silence, 20 us of reads.
TEST_F(TrafficPatternTest, LargeMessagesWithSilenceBetweenThemAreAPingPong) {
  EXPECT_EQ(TrafficPattern::kLargePingPong, Repeat(5, 30000, 10000, kLarge));
  EXPECT_EQ(10, clock_reads_) << "where a message begins and where it ends";
}

TEST_F(TrafficPatternTest, LargeMessagesThatFollowAtOnceAreAStreamWhereverReadsEnd) {
  EXPECT_EQ(TrafficPattern::kStream, Repeat(6, 2000, 10000, kLarge));
}

TEST_F(TrafficPatternTest, TheSizeDecidesBetweenTheTwoKindsOfPingPong) {
  EXPECT_EQ(TrafficPattern::kPingPong, Repeat(5, 30000, 10000, kLarge - 1));
  EXPECT_EQ(TrafficPattern::kLargePingPong, InThreeReads(30000, 10000, kLarge));
  EXPECT_EQ(TrafficPattern::kPingPong, Saw(1, true, kSmall));
}

TEST_F(TrafficPatternTest, OverANetworkOnlyAMessageOfOneReadIsASignOfAPingPong) {
  pattern_ = std::make_unique<PatternDetector>(false);
  EXPECT_EQ(TrafficPattern::kStream, Repeat(5, 30000, 10000, kLarge));
  for (int i = 0; i < 2 * PatternDetector::kScoreMax; ++i) Saw(1, true, kSmall);
  EXPECT_EQ(TrafficPattern::kPingPong, pattern_->pattern());
  EXPECT_EQ(0, clock_reads_);
}

TEST_F(TrafficPatternTest, TheSizeDecidesBetweenTheTwoKindsOfStream) {
  EXPECT_EQ(TrafficPattern::kStream, Repeat(6, 1000, 10000, PatternDetector::kLargeStreamBytes - 1));
  EXPECT_EQ(TrafficPattern::kLargeStream, InThreeReads(1000, 10000, PatternDetector::kLargeStreamBytes));
  EXPECT_EQ(TrafficPattern::kStream, Saw(2, true, kSmall));
}

TEST_F(TrafficPatternTest, ChangesOnlyAfterMoreSignsThanOne) {
  Repeat(10, 30000, 10000, kLarge);
  EXPECT_EQ(TrafficPattern::kLargePingPong, InThreeReads(1000, 10000, kLarge));
  EXPECT_EQ(TrafficPattern::kLargePingPong, InThreeReads(30000, 10000, kLarge));
  EXPECT_EQ(TrafficPattern::kStream, Repeat(2 * PatternDetector::kScoreMax, 1000, 10000, kLarge));
  EXPECT_EQ(TrafficPattern::kStream, InThreeReads(30000, 10000, kLarge));
}

}  // namespace
}  // namespace tcpx
