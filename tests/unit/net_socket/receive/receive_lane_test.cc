// A lane's stream, delivered in reads that end at every byte: the result never depends on where a read ends.
#include "net_socket/receive/receive_lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "net_socket/message/posted_receive.h"
#include "net_socket/receive/stage_pool.h"
#include "tests/support/pattern.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

constexpr size_t kSlots = 32;

// A stream of frames, and what it should leave behind.
class Stream {
 public:
  void Message(const std::string& bytes, uint16_t padding = 0) { MessageInChunks(bytes, {bytes.size()}, padding); }

  // `ends`: where each chunk of the message ends.
  void MessageInChunks(const std::string& bytes, const std::vector<size_t>& ends, uint16_t padding = 0) {
    size_t begin = 0;
    for (const size_t end : ends) {
      Chunk(messages_.size(), bytes.substr(begin, end - begin), begin, bytes.size(), padding);
      begin = end;
    }
    messages_.push_back(bytes);
  }

  void Chunk(uint64_t sequence, const std::string& payload, uint64_t offset, uint64_t message_bytes, uint16_t padding) {
    FrameHeader header;
    header.padding = padding;
    header.length = static_cast<uint32_t>(payload.size());
    header.sequence = sequence;
    header.offset = offset;
    header.message_bytes = message_bytes;
    Frame(header, payload);
  }

  void Record(FrameKind kind, const std::string& body, uint16_t padding = 0) {
    FrameHeader header;
    header.kind = kind;
    header.padding = padding;
    header.length = static_cast<uint32_t>(body.size());
    Frame(header, body);
  }

  void Garbage(const std::string& bytes) { bytes_ += bytes; }

  const std::string& bytes() const { return bytes_; }
  const std::vector<std::string>& messages() const { return messages_; }
  // Where frames begin, and the end of the last one.
  const std::vector<size_t>& boundaries() const { return boundaries_; }

 private:
  void Frame(const FrameHeader& header, const std::string& body) {
    char encoded[kHeaderBytes];
    EncodeHeader(header, encoded);
    bytes_.append(encoded, kHeaderBytes);
    bytes_ += body;
    bytes_.append(header.padding, 'p');
    boundaries_.push_back(bytes_.size());
  }

  std::string bytes_;
  std::vector<std::string> messages_;
  std::vector<size_t> boundaries_ = {0};
};

std::string Text(size_t bytes, int salt) {
  std::string text(bytes, ' ');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + static_cast<size_t>(salt) * 7 + i / 256);
  return text;
}

Stream MixedStream() {
  Stream stream;
  stream.Message(Text(5, 1));
  stream.Message("");
  stream.Message(Text(100, 2), 37);
  stream.Record(static_cast<FrameKind>(200), Text(21, 3));
  stream.Record(FrameKind::kConfirm, "");
  stream.MessageInChunks(Text(300, 4), {128, 256, 300});
  stream.Message(Text(1, 5));
  stream.Message("", 200);
  stream.Record(FrameKind::kCredit, Text(16, 6), 9);
  stream.Message(Text(260, 7), 1);
  stream.Record(FrameKind::kBye, "");
  stream.Message("");
  stream.Message(Text(129, 8));
  return stream;
}

// The last two with every other message of LL or LL128: of a lane that borrows staging for those alone, and of lane 0.
enum class Reads { kHeaderOnly, kStaged, kLittleAhead, kForFlagLines, kFlagLinesAhead };

// A lane with its table, and the buffers of the messages it gets.
class Receiver {
 public:
  Receiver(const Stream& stream, Reads reads)
      : stream_(stream),
        flag_lines_(reads == Reads::kForFlagLines || reads == Reads::kFlagLinesAhead),
        lane_(&table_, reads == Reads::kHeaderOnly ? nullptr : &stages_, 0,
              reads == Reads::kForFlagLines ? ReceiveLane::Borrows::kForFlagLines : ReceiveLane::Borrows::kAlways) {
    lane_.ReadAhead(reads != Reads::kLittleAhead);
  }

  // Posts the receives of the next `count` messages.
  void Post(size_t count) {
    for (; count > 0 && buffers_.size() < stream_.messages().size(); --count) {
      const size_t capacity = stream_.messages()[buffers_.size()].size() + buffers_.size() % 3;
      buffers_.push_back(std::make_unique<GuardedBuffer>(capacity));
      PayloadRoute way;
      way.flag_lines = flag_lines_ && buffers_.size() % 2 == 0;
      receives_.push_back(table_.Post(buffers_.back()->data(), capacity, 0, nullptr, way));
    }
  }

  // Delivers the stream up to byte `until`, in reads that end at `ends` (sorted) or earlier. Posts where the lane
  // parks.
  void Deliver(size_t until, const std::vector<size_t>& ends) {
    auto end = std::upper_bound(ends.begin(), ends.end(), at_);
    while (at_ < until && lane_.status().ok()) {
      const size_t read_to = end == ends.end() ? until : std::min(until, *end);
      const size_t got = ReadOnce(read_to - at_);
      if (got == 0 && !lane_.parked()) return;
      if (got == 0) PostParked();
      at_ += got;
      if (end != ends.end() && at_ == *end) ++end;
    }
    Settle();
  }

  // One read of at most `bytes` into the places that the lane names.
  size_t ReadOnce(size_t bytes) {
    iovec iov[ReceiveLane::kIovMax];
    const int count = lane_.Prepare(iov);
    size_t done = 0;
    for (int i = 0; i < count && done < bytes; ++i) {
      const size_t step = std::min(iov[i].iov_len, bytes - done);
      std::memcpy(iov[i].iov_base, stream_.bytes().data() + at_ + done, step);
      done += step;
    }
    if (done > 0) lane_.Advance(done);
    return done;
  }

  // Lets the lane digest what it has staged.
  void Settle() {
    iovec iov[ReceiveLane::kIovMax];
    while (lane_.Prepare(iov) == 0 && lane_.parked() && buffers_.size() < stream_.messages().size()) PostParked();
  }

  void PostParked() {
    EXPECT_EQ(buffers_.size(), lane_.parked_sequence());
    ++parked_;
    Post(1);
  }

  // Empty exactly when all messages are whole.
  std::string Check() const {
    if (!lane_.status().ok()) return lane_.status().ToString();
    if (buffers_.size() != stream_.messages().size()) return "not all were posted";
    if (lane_.messages_completed() != buffers_.size()) return "not all are complete";
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const std::string& expected = stream_.messages()[i];
      if (!receives_[i]->done.load()) return "message " + std::to_string(i) + " is not done";
      if (receives_[i]->message_bytes.load() != expected.size()) return "size of message " + std::to_string(i);
      if (std::memcmp(expected.data(), buffers_[i]->data(), expected.size()) != 0) {
        return "bytes of message " + std::to_string(i);
      }
      std::string wrong = buffers_[i]->Check(expected.size(), buffers_[i]->bytes_max());
      if (!wrong.empty()) return "message " + std::to_string(i) + ": " + wrong;
    }
    return "";
  }

  ReceiveLane& lane() { return lane_; }
  size_t parked() const { return parked_; }
  size_t at() const { return at_; }

 private:
  const Stream& stream_;
  const bool flag_lines_;
  PostedReceiveTable table_{kSlots};
  StagePool stages_;
  ReceiveLane lane_;
  std::vector<std::unique_ptr<GuardedBuffer>> buffers_;
  std::vector<PostedReceive*> receives_;
  size_t at_ = 0;
  size_t parked_ = 0;
};

class ReceiveLaneTest : public ::testing::TestWithParam<Reads> {
 protected:
  Reads reads() const { return GetParam(); }
};

TEST_P(ReceiveLaneTest, OneReadAsLongAsThePlacesAllow) {
  const Stream stream = MixedStream();
  Receiver receiver(stream, reads());
  receiver.Post(kSlots);
  receiver.Deliver(stream.bytes().size(), {});
  EXPECT_EQ("", receiver.Check());
  receiver.lane().End();
  EXPECT_TRUE(receiver.lane().ended());
  EXPECT_TRUE(receiver.lane().status().ok()) << receiver.lane().status();
}

TEST_P(ReceiveLaneTest, AReadEndsAtEveryByte) {
  const Stream stream = MixedStream();
  const size_t bytes = stream.bytes().size();
  for (size_t split = 1; split < bytes && !HasFailure(); ++split) {
    const std::vector<std::vector<size_t>> variants = {{split}, {split, split + 1}, {split - 1, split, split + 1}};
    for (const std::vector<size_t>& ends : variants) {
      Receiver receiver(stream, reads());
      receiver.Post(kSlots);
      receiver.Deliver(bytes, ends);
      EXPECT_EQ("", receiver.Check()) << "reads end at " << split << " and beside it, " << ends.size();
      EXPECT_EQ(0u, receiver.parked());
    }
  }
}

TEST_P(ReceiveLaneTest, EveryReadBringsOneByte) {
  const Stream stream = MixedStream();
  std::vector<size_t> all;
  for (size_t i = 1; i <= stream.bytes().size(); ++i) all.push_back(i);
  Receiver receiver(stream, reads());
  receiver.Post(kSlots);
  receiver.Deliver(stream.bytes().size(), all);
  EXPECT_EQ("", receiver.Check());
}

// The first `posted` receives are there, each other one is posted when the lane parks on it, at every split.
TEST_P(ReceiveLaneTest, ParksAtEachMessageAndResumes) {
  const Stream stream = MixedStream();
  const size_t messages = stream.messages().size();
  for (size_t posted = 0; posted <= messages && !HasFailure(); ++posted) {
    for (size_t split = 1; split < stream.bytes().size(); split += posted == 0 ? 1 : 7) {
      Receiver receiver(stream, reads());
      receiver.Post(posted);
      receiver.Deliver(stream.bytes().size(), {split});
      EXPECT_EQ("", receiver.Check()) << posted << " posted, split at " << split;
      EXPECT_EQ(messages - posted, receiver.parked());
    }
  }
}

TEST_P(ReceiveLaneTest, AParkedLaneAsksForNothing) {
  const Stream stream = MixedStream();
  Receiver receiver(stream, reads());
  EXPECT_LT(0u, receiver.ReadOnce(stream.bytes().size()));
  iovec iov[ReceiveLane::kIovMax];
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(0, receiver.lane().Prepare(iov));
    EXPECT_TRUE(receiver.lane().parked());
    EXPECT_EQ(0u, receiver.lane().parked_sequence());
  }
  receiver.Post(1);
  receiver.lane().Prepare(iov);
  EXPECT_EQ(1u, receiver.lane().messages_completed());
}

// A look that brings nothing leaves the lane as it was, at every byte, and gives the borrowed staging back.
TEST_P(ReceiveLaneTest, NothingComesAtEveryByte) {
  const Stream stream = MixedStream();
  for (size_t split = 0; split < stream.bytes().size() && !HasFailure(); ++split) {
    Receiver receiver(stream, reads());
    receiver.Post(kSlots);
    receiver.Deliver(split, {});
    for (int i = 0; i < 2; ++i) {
      iovec iov[ReceiveLane::kIovMax];
      EXPECT_LT(0, receiver.lane().Prepare(iov));
      receiver.lane().NothingCame();
    }
    receiver.Deliver(stream.bytes().size(), {});
    EXPECT_EQ("", receiver.Check()) << "nothing came at " << split;
  }
}

// The peer ends the stream after every byte: an error exactly in the middle of a frame.
TEST_P(ReceiveLaneTest, TheStreamEndsAtEveryByte) {
  const Stream stream = MixedStream();
  for (size_t end = 0; end <= stream.bytes().size() && !HasFailure(); ++end) {
    Receiver receiver(stream, reads());
    receiver.Post(kSlots);
    receiver.Deliver(end, {});
    ASSERT_EQ(end, receiver.at());
    const auto& boundaries = stream.boundaries();
    const bool between_frames = std::find(boundaries.begin(), boundaries.end(), end) != boundaries.end();
    EXPECT_EQ(between_frames, receiver.lane().between_frames()) << end;
    receiver.lane().End();
    EXPECT_EQ(between_frames, receiver.lane().status().ok()) << end << ": " << receiver.lane().status();
    if (!between_frames) {
      EXPECT_EQ(absl::StatusCode::kUnavailable, receiver.lane().status().code());
    }
    iovec iov[ReceiveLane::kIovMax];
    EXPECT_EQ(0, receiver.lane().Prepare(iov));
  }
}

TEST_P(ReceiveLaneTest, SeededMessagesAndReads) {
  Rng rng(TestSeed());
  for (int round = 0; round < 100 / TimeScale() && !HasFailure(); ++round) {
    Stream stream;
    for (int i = 0; i < 20; ++i) {
      const size_t bytes = rng.OneIn(10) ? rng.Between(0, 300000) : rng.Between(0, 2000);
      const uint16_t padding = rng.OneIn(3) ? static_cast<uint16_t>(rng.Between(1, 65535)) : uint16_t{0};
      std::vector<size_t> ends;
      for (size_t end = 0; end < bytes && rng.OneIn(2);) {
        end = std::min(bytes, end + rng.Between(1, bytes));
        ends.push_back(end);
      }
      if (ends.empty() || ends.back() != bytes) ends.push_back(bytes);
      stream.MessageInChunks(Text(bytes, i), ends, padding);
      if (rng.OneIn(4)) stream.Record(static_cast<FrameKind>(rng.Between(68, 255)), Text(rng.Between(0, 65536), i));
    }
    std::vector<size_t> ends;
    for (size_t at = 0; at < stream.bytes().size();) ends.push_back(at += rng.Between(1, rng.OneIn(2) ? 100 : 200000));
    Receiver receiver(stream, reads());
    receiver.Post(rng.Between(0, 20));
    receiver.Deliver(stream.bytes().size(), ends);
    EXPECT_EQ("", receiver.Check()) << "round " << round;
  }
}

// What a peer may get wrong. `make` writes the stream; two receives of 100 bytes are posted.
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

// Bytes behind a payload are left to the kernel, so that they need not be copied again.
TEST(ReceiveLaneReadAheadTest, LittleBehindAHeaderAndNothingBehindAPayload) {
  Stream stream;
  stream.Message(Text(100000, 1));
  Receiver receiver(stream, Reads::kLittleAhead);
  receiver.Post(1);
  EXPECT_EQ(4096u, receiver.ReadOnce(stream.bytes().size()));
  iovec iov[ReceiveLane::kIovMax];
  ASSERT_EQ(1, receiver.lane().Prepare(iov));
  EXPECT_EQ(100000 - (4096 - kHeaderBytes), iov[0].iov_len);
  receiver.lane().ReadAhead(true);
  EXPECT_EQ(2, receiver.lane().Prepare(iov));
}

// The staging that a bulk lane borrows is back once the payload is there.
TEST(ReceiveLaneFlagLinesTest, ABulkLaneBorrowsForThePayloadAlone) {
  Stream stream;
  stream.Message("");
  stream.Message(Text(300000, 1));
  Receiver receiver(stream, Reads::kForFlagLines);
  receiver.Post(2);
  iovec iov[ReceiveLane::kIovMax];
  ASSERT_EQ(1, receiver.lane().Prepare(iov));
  const void* const beside = iov[0].iov_base;
  receiver.Deliver(2 * kHeaderBytes, {});
  ASSERT_EQ(1, receiver.lane().Prepare(iov));
  EXPECT_EQ(kStageBytes, iov[0].iov_len);
  receiver.Deliver(stream.bytes().size(), {});
  EXPECT_EQ("", receiver.Check());
  ASSERT_EQ(1, receiver.lane().Prepare(iov));
  EXPECT_EQ(beside, iov[0].iov_base);
}

std::string Name(const ::testing::TestParamInfo<Reads>& mode) {
  const char* const names[] = {"HeaderOnly", "Staged", "LittleAhead", "ForFlagLines", "FlagLinesAhead"};
  return names[static_cast<int>(mode.param)];
}

INSTANTIATE_TEST_SUITE_P(Staging, ReceiveLaneTest,
                         ::testing::Values(Reads::kHeaderOnly, Reads::kStaged, Reads::kLittleAhead,
                                           Reads::kForFlagLines, Reads::kFlagLinesAhead),
                         Name);

}  // namespace
}  // namespace tcpx
