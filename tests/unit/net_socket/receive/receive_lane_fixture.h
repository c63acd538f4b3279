// receive_lane_fixture.h: a stream of frames, and a lane that gets it in reads that end where the test says.
//
// Threads: one. Lifetime: a receiver's stream outlives it.
// Errors:  Check: empty, or what is wrong.
#pragma once

#include <gtest/gtest.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "net_socket/message/posted_receive.h"
#include "net_socket/receive/lane_stage.h"
#include "net_socket/receive/receive_lane.h"
#include "tests/support/pattern.h"

namespace tcpx {

inline constexpr size_t kSlots = 32;

// A stream of frames, and what it should leave in memory.
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

inline std::string Text(size_t bytes, int salt) {
  std::string text(bytes, ' ');
  for (size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>(i * 31 + static_cast<size_t>(salt) * 7 + i / 256);
  return text;
}

inline Stream MixedStream() {
  Stream stream;
  stream.Message(Text(5, 1));
  stream.Message("");
  stream.Message(Text(100, 2), 37);
  stream.Record(static_cast<FrameKind>(200), Text(21, 3));
  stream.Record(static_cast<FrameKind>(65), "");
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

inline std::string ReadsName(const ::testing::TestParamInfo<Reads>& mode) {
  const char* const names[] = {"HeaderOnly", "Staged", "LittleAhead", "ForFlagLines", "FlagLinesAhead"};
  return names[static_cast<int>(mode.param)];
}

}  // namespace tcpx
