// Reads as they come from a ping-pong, a stream, and what lies between, with a clock of the test's.
#include "net_socket/receive/receive_tempo.h"

#include <gtest/gtest.h>

#include <memory>

namespace tcpx {
namespace {

constexpr size_t kSmall = 4096;
constexpr size_t kLarge = ReceiveTempo::kLargePingPongBytes;

class ReceiveTempoTest : public ::testing::Test {
 protected:
  Tempo Saw(int messages, bool between_frames, size_t message_bytes) {
    ReceiveTempo::Read read;
    read.messages = messages;
    read.between_frames = between_frames;
    read.message_bytes = message_bytes;
    return tempo_->Saw(read, [this] {
      ++clock_reads_;
      return now_ns_;
    });
  }

  // A message in three reads, `wait_ns` after the last, of which each took `read_ns`.
  Tempo InThreeReads(int64_t wait_ns, int64_t read_ns, size_t bytes) {
    now_ns_ += wait_ns;
    Saw(0, false, bytes);
    now_ns_ += read_ns;
    Saw(0, false, bytes);
    now_ns_ += read_ns;
    return Saw(1, true, bytes);
  }

  Tempo Repeat(int times, int64_t wait_ns, int64_t read_ns, size_t bytes) {
    for (int i = 0; i < times; ++i) InThreeReads(wait_ns, read_ns, bytes);
    return tempo_->tempo();
  }

  std::unique_ptr<ReceiveTempo> tempo_ = std::make_unique<ReceiveTempo>(true);
  int64_t now_ns_ = 1000000;
  int clock_reads_ = 0;
};

TEST_F(ReceiveTempoTest, WholeMessagesOneAReadAreAPingPongAndNeedNoClock) {
  EXPECT_EQ(Tempo::kUnknown, tempo_->tempo());
  for (int i = 1; i < ReceiveTempo::kScoreMax; ++i) EXPECT_EQ(Tempo::kUnknown, Saw(1, true, kSmall));
  EXPECT_EQ(Tempo::kPingPong, Saw(1, true, kSmall));
  EXPECT_EQ(0, clock_reads_);
}

TEST_F(ReceiveTempoTest, SeveralMessagesAReadAreAStream) {
  for (int i = 0; i < ReceiveTempo::kScoreMax; ++i) Saw(3, true, kSmall);
  EXPECT_EQ(Tempo::kStream, tempo_->tempo());
}

TEST_F(ReceiveTempoTest, AReadThatEndsInTheNextMessageIsAStream) {
  for (int i = 0; i <= ReceiveTempo::kScoreMax; ++i) Saw(1, false, kLarge);
  EXPECT_EQ(Tempo::kStream, tempo_->tempo());
}

// The answer takes as long as the message: 30 us of silence, 20 us of reads.
TEST_F(ReceiveTempoTest, LargeMessagesWithSilenceBetweenThemAreAPingPong) {
  EXPECT_EQ(Tempo::kLargePingPong, Repeat(5, 30000, 10000, kLarge));
  EXPECT_EQ(10, clock_reads_) << "where a message begins and where it ends";
}

TEST_F(ReceiveTempoTest, LargeMessagesThatFollowAtOnceAreAStreamWhereverReadsEnd) {
  EXPECT_EQ(Tempo::kStream, Repeat(6, 2000, 10000, kLarge));
}

TEST_F(ReceiveTempoTest, TheSizeDecidesBetweenTheTwoKindsOfPingPong) {
  EXPECT_EQ(Tempo::kPingPong, Repeat(5, 30000, 10000, kLarge - 1));
  EXPECT_EQ(Tempo::kLargePingPong, InThreeReads(30000, 10000, kLarge));
  EXPECT_EQ(Tempo::kPingPong, Saw(1, true, kSmall));
}

TEST_F(ReceiveTempoTest, OverANetworkOnlyAMessageOfOneReadIsASignOfAPingPong) {
  tempo_ = std::make_unique<ReceiveTempo>(false);
  EXPECT_EQ(Tempo::kStream, Repeat(5, 30000, 10000, kLarge));
  for (int i = 0; i < 2 * ReceiveTempo::kScoreMax; ++i) Saw(1, true, kSmall);
  EXPECT_EQ(Tempo::kPingPong, tempo_->tempo());
  EXPECT_EQ(0, clock_reads_);
}

TEST_F(ReceiveTempoTest, TheSizeDecidesBetweenTheTwoKindsOfStream) {
  EXPECT_EQ(Tempo::kStream, Repeat(6, 1000, 10000, ReceiveTempo::kLargeStreamBytes - 1));
  EXPECT_EQ(Tempo::kLargeStream, InThreeReads(1000, 10000, ReceiveTempo::kLargeStreamBytes));
  EXPECT_EQ(Tempo::kStream, Saw(2, true, kSmall));
}

TEST_F(ReceiveTempoTest, ChangesOnlyBehindMoreSignsThanOne) {
  Repeat(10, 30000, 10000, kLarge);
  EXPECT_EQ(Tempo::kLargePingPong, InThreeReads(1000, 10000, kLarge));
  EXPECT_EQ(Tempo::kLargePingPong, InThreeReads(30000, 10000, kLarge));
  EXPECT_EQ(Tempo::kStream, Repeat(2 * ReceiveTempo::kScoreMax, 1000, 10000, kLarge));
  EXPECT_EQ(Tempo::kStream, InThreeReads(30000, 10000, kLarge));
}

}  // namespace
}  // namespace tcpx
