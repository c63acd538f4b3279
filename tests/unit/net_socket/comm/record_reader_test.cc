// What a sender's peer says, arriving in pieces that end at every byte.
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/match.h"
#include "net_socket/comm/peer_watch.h"

namespace tcpx {
namespace {

std::string Record(FrameKind kind, const std::string& body, uint16_t padding = 0) {
  FrameHeader header;
  header.kind = kind;
  header.length = static_cast<uint32_t>(body.size());
  header.padding = padding;
  std::string frame(kHeaderBytes, ' ');
  EncodeHeader(header, &frame[0]);
  return frame + body + std::string(padding, 'p');
}

// The status after both parts.
absl::Status TakeInTwo(const std::string& bytes, size_t split) {
  RecordReader reader;
  absl::Status status = reader.Take(bytes.data(), split);
  if (status.ok()) status = reader.Take(bytes.data() + split, bytes.size() - split);
  return status;
}

TEST(RecordReaderTest, UnknownRecordsAreSkippedAtEverySplit) {
  const std::string bytes = Record(static_cast<FrameKind>(200), "abc", 5) + Record(FrameKind::kCredit, "") +
                            Record(static_cast<FrameKind>(65), std::string(70, 'x')) + Record(FrameKind::kBye, "");
  for (size_t split = 0; split <= bytes.size(); ++split) EXPECT_TRUE(TakeInTwo(bytes, split).ok()) << split;
}

TEST(RecordReaderTest, AnErrorIsReportedAtEverySplit) {
  const std::string bytes = Record(FrameKind::kCredit, "abc", 5) + Record(FrameKind::kError, "out of luck");
  for (size_t split = 0; split <= bytes.size(); ++split) {
    const absl::Status status = TakeInTwo(bytes, split);
    EXPECT_EQ(absl::StatusCode::kUnavailable, status.code());
    EXPECT_TRUE(absl::StrContains(status.message(), "the peer failed: out of luck")) << split;
  }
}

std::string CreditRecord(uint64_t sequence, const std::string& tags) {
  FrameHeader header;
  header.kind = FrameKind::kCredit;
  header.sequence = sequence;
  header.length = static_cast<uint32_t>(tags.size());
  std::string frame(kHeaderBytes, ' ');
  EncodeHeader(header, &frame[0]);
  return frame + tags;
}

TEST(RecordReaderTest, CreditsReachTheBookAtEverySplit) {
  const std::string bytes = CreditRecord(0, std::string("\1\0\0\0\2\0\0\0", 8)) +
                            Record(static_cast<FrameKind>(65), "x") + CreditRecord(2, std::string("\3\0\0\0", 4));
  for (size_t split = 0; split <= bytes.size(); ++split) {
    CreditBook book(8);
    RecordReader reader(&book);
    ASSERT_TRUE(reader.Take(bytes.data(), split).ok());
    ASSERT_TRUE(reader.Take(bytes.data() + split, bytes.size() - split).ok());
    uint64_t sequence = 9;
    EXPECT_TRUE(book.Take(2, &sequence));
    EXPECT_EQ(1u, sequence);
    EXPECT_FALSE(book.Take(3, &sequence));
    EXPECT_TRUE(book.Take(1, &sequence));
    EXPECT_TRUE(book.Take(3, &sequence));
    EXPECT_EQ(2u, sequence);
  }
}

TEST(RecordReaderTest, AWrongCreditIsGarbage) {
  CreditBook book(2);
  RecordReader reader(&book);
  const std::string bytes = CreditRecord(0, std::string(12, 'x'));
  const absl::Status status = reader.Take(bytes.data(), bytes.size());
  EXPECT_EQ(absl::StatusCode::kUnavailable, status.code());
  EXPECT_TRUE(absl::StrContains(status.message(), "a credit of a wrong length")) << status;
}

TEST(RecordReaderTest, AnErrorStays) {
  const std::string bytes = Record(FrameKind::kError, "first") + Record(FrameKind::kError, "second");
  RecordReader reader;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ("the peer failed: first", reader.Take(bytes.data(), bytes.size()).message()) << i;
  }
}

TEST(RecordReaderTest, NoLongAndNoForgedLines) {
  const std::string bytes = Record(FrameKind::kError, "a\nWARN b\x1b" + std::string(60000, 'e'), 9);
  const absl::Status status = TakeInTwo(bytes, 7000);
  EXPECT_TRUE(absl::StartsWith(status.message(), "the peer failed: a?WARN b?eee")) << status;
  EXPECT_GE(kCauseBytesMax + 20, status.message().size());
}

TEST(RecordReaderTest, GarbageIsAnError) {
  for (const std::string& bytes :
       {std::string(kHeaderBytes, '\x01'), std::string(kHeaderBytes, '\x20'), Record(FrameKind::kChunk, "")}) {
    EXPECT_EQ(absl::StatusCode::kUnavailable, TakeInTwo(bytes, 7).code());
  }
}

}  // namespace
}  // namespace tcpx
