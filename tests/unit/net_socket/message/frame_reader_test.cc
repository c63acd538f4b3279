// Records out of a stream that arrives in pieces. What the two listeners make of them: record_reader_test, health_test.
#include "net_socket/message/frame_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace tcpx {
namespace {

std::string Record(int kind, const std::string& body, uint16_t padding = 0) {
  FrameHeader header;
  header.kind = static_cast<FrameKind>(kind);
  header.length = static_cast<uint32_t>(body.size());
  header.padding = padding;
  std::string frame(kHeaderBytes, ' ');
  EncodeHeader(header, &frame[0]);
  return frame + body + std::string(padding, 'p');
}

// Notes each record as "kind:body;", and refuses those of kind 99.
class Notes {
 public:
  absl::Status Take(const std::string& bytes) {
    return reader_.Take(bytes.data(), bytes.size(), [this](const FrameHeader& header, absl::string_view body) {
      if (static_cast<int>(header.kind) == 99) return absl::AbortedError("refused");
      text_ += std::to_string(static_cast<int>(header.kind)) + ":" + std::string(body) + ";";
      return absl::OkStatus();
    });
  }
  const std::string& text() const { return text_; }

 private:
  FrameReader reader_{"a message here"};
  std::string text_;
};

TEST(FrameReaderTest, EachRecordOnceAtEverySplit) {
  const std::string bytes = Record(64, "abc", 5) + Record(200, "") + Record(66, std::string(70, 'x'));
  for (size_t split = 0; split <= bytes.size(); ++split) {
    Notes notes;
    ASSERT_TRUE(notes.Take(bytes.substr(0, split)).ok());
    ASSERT_TRUE(notes.Take(bytes.substr(split)).ok());
    EXPECT_EQ("64:abc;200:;66:" + std::string(70, 'x') + ";", notes.text()) << split;
  }
}

TEST(FrameReaderTest, TheVisitorsErrorStays) {
  Notes notes;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(absl::AbortedError("refused"), notes.Take(Record(64, "a") + Record(99, "b") + Record(64, "c"))) << i;
    EXPECT_EQ("64:a;", notes.text());
  }
}

TEST(FrameReaderTest, GarbageIsTheReadersError) {
  EXPECT_EQ("the peer sent what is not tcpx: a message here", Notes().Take(Record(1, "")).message());
  EXPECT_EQ("the peer sent what is not tcpx: unknown kind of frame", Notes().Take(Record(9, "")).message());
}

}  // namespace
}  // namespace tcpx
