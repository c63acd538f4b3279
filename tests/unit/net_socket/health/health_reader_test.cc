// What a peer may say on the health socket, honest or not.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "net_socket/health/health_peer.h"
#include "tests/unit/net_socket/health/health_records.h"

namespace tcpx {
namespace {

struct Heard {
  absl::Status status;
  std::vector<HealthNotice> notices;
  bool bye = false;
};

Heard HearInTwo(const std::string& bytes, size_t split) {
  Heard heard;
  HealthReader reader;
  heard.status = reader.Take(bytes.data(), split, &heard.notices);
  if (heard.status.ok()) heard.status = reader.Take(bytes.data() + split, bytes.size() - split, &heard.notices);
  heard.bye = reader.bye();
  return heard;
}

TEST(HealthReaderTest, NoticesAndByeAtEverySplit) {
  const std::string bytes =
      Notice(1, "one") + Record(static_cast<FrameKind>(200), "unknown") + Notice(2, "") + Record(FrameKind::kBye, "");
  for (size_t split = 0; split <= bytes.size(); ++split) {
    const Heard heard = HearInTwo(bytes, split);
    ASSERT_TRUE(heard.status.ok()) << heard.status;
    ASSERT_EQ(2u, heard.notices.size()) << split;
    EXPECT_EQ(Id(1), heard.notices[0].connection);
    EXPECT_EQ("one", heard.notices[0].cause);
    EXPECT_EQ(Id(2), heard.notices[1].connection);
    EXPECT_TRUE(heard.bye);
  }
}

TEST(HealthReaderTest, AHostileTextIsCutAndCleaned) {
  const Heard heard = HearInTwo(Notice(1, "a\nWARN \x1b[2J%s" + std::string(5000, 'x')), 3);
  ASSERT_EQ(1u, heard.notices.size());
  EXPECT_TRUE(absl::StartsWith(heard.notices[0].cause, "a?WARN ?[2J%s"));
  EXPECT_EQ(kCauseBytesMax, heard.notices[0].cause.size());
}

TEST(HealthReaderTest, TooShortForAConnectionIsNoNotice) {
  EXPECT_TRUE(HearInTwo(Record(FrameKind::kError, "short"), 1).notices.empty());
}

TEST(HealthReaderTest, GarbageIsAnError) {
  FrameHeader chunk;
  std::string message(kHeaderBytes, '\0');
  EncodeHeader(chunk, &message[0]);
  for (const std::string& bytes : {std::string(kHeaderBytes, '\x20'), message}) {
    EXPECT_EQ(absl::StatusCode::kUnavailable, HearInTwo(bytes, 9).status.code());
  }
}

}  // namespace
}  // namespace tcpx
