// What a peer may get wrong, delivered in reads that end at every byte: the same error wherever a read ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/receive/lane_stage.h"
#include "net_socket/receive/receive_lane.h"
#include "tests/support/pattern.h"
#include "tests/unit/net_socket/receive/receive_lane_fixture.h"

namespace tcpx {
namespace {

// `make` writes the stream; two receives of 100 bytes are posted.
struct BrokenCase {
  const char* name;
  absl::StatusCode code;
  const char* text;
  std::function<void(Stream*)> make;
};

const std::vector<BrokenCase>& BrokenCases() {
  static const auto* cases = new std::vector<BrokenCase>{
      {"garbage", absl::StatusCode::kUnavailable, "unknown kind of frame",
       [](Stream* s) { s->Garbage(std::string(200, '\x02')); }},
      {"too large", absl::StatusCode::kInvalidArgument,
       "message 0 of 101 bytes is larger than the posted receive of 100",
       [](Stream* s) { s->Chunk(0, std::string(101, 'x'), 0, 101, 0); }},
      {"repeat", absl::StatusCode::kUnavailable, "broke the protocol",
       [](Stream* s) {
         s->Chunk(0, std::string(100, 'x'), 0, 100, 0);
         s->Chunk(0, std::string(100, 'x'), 0, 100, 0);
       }},
      {"overlap", absl::StatusCode::kUnavailable, "broke the protocol",
       [](Stream* s) {
         s->Chunk(0, std::string(60, 'x'), 0, 100, 0);
         s->Chunk(0, std::string(60, 'x'), 40, 100, 0);
       }},
      {"overlap that adds up to the message", absl::StatusCode::kUnavailable, "broke the protocol",
       [](Stream* s) {
         s->Chunk(0, std::string(60, 'x'), 0, 100, 0);
         s->Chunk(0, std::string(40, 'x'), 59, 100, 0);
       }},
      {"repeat that adds up to the message", absl::StatusCode::kUnavailable, "broke the protocol",
       [](Stream* s) {
         s->Chunk(1, std::string(50, 'x'), 50, 100, 0);
         s->Chunk(1, std::string(50, 'x'), 50, 100, 0);
       }},
      {"two sizes", absl::StatusCode::kUnavailable, "broke the protocol",
       [](Stream* s) {
         s->Chunk(1, std::string(60, 'x'), 0, 100, 0);
         s->Chunk(1, std::string(10, 'x'), 60, 90, 0);
       }},
      {"error record", absl::StatusCode::kUnavailable, "the peer failed: out of luck",
       [](Stream* s) { s->Record(FrameKind::kError, "out of luck"); }},
      {"error record that forges a line", absl::StatusCode::kUnavailable, "the peer failed: out of?luck?",
       [](Stream* s) { s->Record(FrameKind::kError, "out of\nluck\x1b"); }},
      {"error record without a text", absl::StatusCode::kUnavailable, "the peer failed",
       [](Stream* s) { s->Record(FrameKind::kError, ""); }},
      {"record too long", absl::StatusCode::kUnavailable, "record longer than 64 KiB",
       [](Stream* s) { s->Record(FrameKind::kBye, std::string(kRecordBytesMax + 1, 'x')); }},
  };
  return *cases;
}

TEST_P(ReceiveLaneTest, WhatAPeerGetsWrongIsAnErrorAtEverySplit) {
  for (const BrokenCase& broken : BrokenCases()) {
    Stream stream;
    broken.make(&stream);
    for (size_t split = 1; split < std::min<size_t>(stream.bytes().size(), 400) && !HasFailure(); ++split) {
      PostedReceiveTable table(kSlots);
      StagePool stages;
      ReceiveLane lane(&table, reads() == Reads::kHeaderOnly ? nullptr : &stages);
      GuardedBuffer first(100), second(100);
      table.Post(first.data(), 100, 0);
      table.Post(second.data(), 100, 0);
      size_t at = 0;
      iovec iov[ReceiveLane::kIovMax];
      while (at < stream.bytes().size()) {
        const size_t read_to = at < split ? split : stream.bytes().size();
        const int count = lane.Prepare(iov);
        if (count == 0) break;
        size_t done = 0;
        for (int i = 0; i < count; ++i) {
          const size_t step = std::min(iov[i].iov_len, read_to - at - done);
          std::memcpy(iov[i].iov_base, stream.bytes().data() + at + done, step);
          done += step;
        }
        lane.Advance(done);
        at += done;
      }
      EXPECT_EQ(broken.code, lane.status().code()) << broken.name << " split at " << split;
      EXPECT_TRUE(absl::StrContains(lane.status().message(), broken.text)) << broken.name << ": " << lane.status();
      EXPECT_EQ(0, lane.Prepare(iov));
      EXPECT_EQ("", first.Check(100, 100));
      EXPECT_EQ("", second.Check(100, 100));
    }
  }
}

// Padding once became part of the text.
TEST_P(ReceiveLaneTest, TheTextOfAnErrorEndsBeforeItsPadding) {
  Stream stream;
  stream.Message(Text(5, 1), 50);
  stream.Record(FrameKind::kError, "out of luck", 30);
  stream.Message("");
  const size_t end = stream.bytes().size() - kHeaderBytes;
  for (size_t split = 1; split < end && !HasFailure(); ++split) {
    Receiver receiver(stream, reads());
    receiver.Post(kSlots);
    receiver.Deliver(stream.bytes().size(), {split, end});
    EXPECT_EQ("the peer failed: out of luck", receiver.lane().status().message()) << split;
  }
}

}  // namespace
}  // namespace tcpx
