// What lane 0 sends, taken by the kernel in pieces that end at every byte.
#include "net_socket/send/send_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace tcpx {
namespace {

struct Message {
  size_t bytes;
  uint16_t padding;
};

// The queue with its requests and the stream it ought to give.
class Sender {
 public:
  Sender(const std::vector<Message>& messages, size_t chunk_bytes_max) : queue_(chunk_bytes_max) {
    for (size_t i = 0; i < messages.size(); ++i) Push(messages[i], i, chunk_bytes_max);
  }

  // The kernel takes at most up to byte `to` of the stream. False when the queue has nothing to give.
  bool Send(size_t to) {
    iovec iov[SendQueue::kIovMax];
    size_t offered = 0;
    const int count = queue_.Gather(iov, &offered);
    if (count == 0) return false;
    std::string all;
    for (int i = 0; i < count; ++i) all.append(static_cast<char*>(iov[i].iov_base), iov[i].iov_len);
    EXPECT_EQ(offered, all.size());
    const size_t taken = std::min(all.size(), to - sent_.size());
    sent_.append(all, 0, taken);
    queue_.Advance(taken);
    CheckCounts();
    return true;
  }

  void SendAll() {
    while (Send(expected_.size())) {
    }
    EXPECT_TRUE(queue_.empty());
    EXPECT_TRUE(expected_ == sent_);
  }

  const std::string& expected() const { return expected_; }

 private:
  void Push(const Message& message, uint64_t sequence, size_t chunk_bytes_max) {
    auto request = std::make_unique<SendRequest>();
    data_.push_back(std::make_unique<std::string>(message.bytes, ' '));
    std::string& data = *data_.back();
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 13 + sequence);
    request->data = data.data();
    request->bytes = data.size();
    request->message_bytes = data.size();
    request->sequence = sequence;
    request->tag = static_cast<int32_t>(sequence * 3);
    request->left.store(Units(data.size()));
    size_t offset = 0;
    do {
      FrameHeader header;
      header.padding = message.padding;
      header.length = static_cast<uint32_t>(std::min(chunk_bytes_max, data.size() - offset));
      header.sequence = sequence;
      header.offset = offset;
      header.message_bytes = data.size();
      header.tag = request->tag;
      char encoded[kHeaderBytes];
      EncodeHeader(header, encoded);
      expected_.append(encoded, kHeaderBytes);
      payloads_.push_back({expected_.size(), expected_.size() + header.length});
      expected_.append(data, offset, header.length);
      expected_.append(message.padding, '\0');
      offset += header.length;
    } while (offset < data.size());
    ends_.push_back(expected_.size());
    queue_.Push(request.get(), message.padding);
    requests_.push_back(std::move(request));
  }

  // A request is done exactly when its last byte was taken; waiting_bytes counts the payload that was not.
  void CheckCounts() {
    for (size_t i = 0; i < requests_.size(); ++i) EXPECT_EQ(sent_.size() >= ends_[i], requests_[i]->done()) << i;
    size_t waiting = 0;
    for (const auto& [begin, end] : payloads_) waiting += end - std::clamp(sent_.size(), begin, end);
    EXPECT_EQ(waiting, queue_.waiting_bytes());
  }

  SendQueue queue_;
  std::vector<std::unique_ptr<SendRequest>> requests_;
  std::vector<std::unique_ptr<std::string>> data_;
  std::string expected_;
  std::string sent_;
  std::vector<std::pair<size_t, size_t>> payloads_;
  std::vector<size_t> ends_;
};

const std::vector<Message> kMixed = {{0, 0}, {1, 0}, {100, 37}, {0, 560}, {300, 0}, {128, 0}, {257, 5}, {0, 0}};

TEST(SendQueueTest, EmptyGivesNothing) {
  SendQueue queue;
  iovec iov[SendQueue::kIovMax];
  size_t bytes = 1;
  EXPECT_EQ(0, queue.Gather(iov, &bytes));
  EXPECT_EQ(0u, bytes);
  EXPECT_TRUE(queue.empty());
}

TEST(SendQueueTest, NeverRunsPastItsEnd) {
  SendQueue queue(1000);
  const std::string data(10, 'x');
  SendRequest request;
  request.data = data.data();
  request.bytes = request.message_bytes = data.size();
  request.left.store(Units(data.size()));
  queue.Push(&request, 0);
  queue.Advance(10'000);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(request.done());
  EXPECT_EQ(0u, queue.waiting_bytes());
}

TEST(SendQueueTest, AllAtOnce) {
  Sender sender(kMixed, kChunkBytesMax);
  EXPECT_TRUE(sender.Send(sender.expected().size()));
  EXPECT_FALSE(sender.Send(sender.expected().size())) << "one call is enough for short messages";
  sender.SendAll();
}

class SendQueueSplitTest : public ::testing::TestWithParam<size_t> {};

TEST_P(SendQueueSplitTest, AWriteEndsAtEveryByte) {
  const size_t bytes = Sender(kMixed, GetParam()).expected().size();
  for (size_t split = 1; split < bytes && !HasFailure(); ++split) {
    Sender sender(kMixed, GetParam());
    for (const size_t end : {split - 1, split, split + 1}) {
      for (int i = 0; i < 20 && end > 0; ++i) sender.Send(end);
    }
    sender.SendAll();
  }
}

TEST_P(SendQueueSplitTest, EveryWriteTakesOneByte) {
  Sender sender(kMixed, GetParam());
  for (size_t to = 1; to < sender.expected().size(); ++to) ASSERT_TRUE(sender.Send(to));
  sender.SendAll();
}

// 128: messages travel as several chunks.
INSTANTIATE_TEST_SUITE_P(ChunkBytes, SendQueueSplitTest, ::testing::Values(size_t{128}, size_t{100}, kChunkBytesMax));

TEST(SendQueueTest, MoreMessagesThanOneCallHolds) {
  Sender sender(std::vector<Message>(64, {10, 3}), kChunkBytesMax);
  sender.SendAll();
}

TEST(SendQueueTest, SeededMessagesAndWrites) {
  Rng rng(TestSeed());
  for (int round = 0; round < 200 && !::testing::Test::HasFailure(); ++round) {
    std::vector<Message> messages(rng.Between(1, 64));
    for (Message& message : messages) {
      message = {rng.Between(0, 1000), static_cast<uint16_t>(rng.OneIn(3) ? rng.Between(1, 700) : 0)};
    }
    Sender sender(messages, rng.OneIn(2) ? 128 : kChunkBytesMax);
    for (size_t to = 0; to < sender.expected().size();) {
      to = std::min(sender.expected().size(), to + rng.Between(1, 3000));
      sender.Send(to);
    }
    sender.SendAll();
  }
}

TEST(SendQueueTest, TheRingComesRound) {
  SendQueue queue;
  SendRequest requests[4];
  char byte = 'x';
  for (int i = 0; i < 1000; ++i) {
    SendRequest& request = requests[i % 4];
    request.data = &byte;
    request.bytes = 1;
    request.message_bytes = 1;
    request.left.store(1);
    queue.Push(&request, 0);
    if (i % 4 != 3) continue;
    iovec iov[SendQueue::kIovMax];
    size_t bytes = 0;
    EXPECT_EQ(8, queue.Gather(iov, &bytes));
    EXPECT_EQ(4 * (kHeaderBytes + 1), bytes);
    queue.Advance(bytes);
    EXPECT_TRUE(queue.empty());
    EXPECT_EQ(0u, queue.waiting_bytes());
  }
}

// Where lanes heal: what is copied is done when the kernel takes it, what is longer when its peer's has it.
TEST(SendQueueTest, ShortPayloadIsDoneAtOnceAndLongWhenItIsAcknowledged) {
  HeldFrames held(8, 256 << 10);
  SendQueue queue(kChunkBytesMax, &held);
  const std::string data(kCopiedPayloadBytesMax + 1, 'x');
  SendRequest requests[2];
  size_t stream = 0;
  for (size_t i = 0; i < 2; ++i) {
    SendRequest& request = requests[i];
    request.data = data.data();
    request.bytes = request.message_bytes = kCopiedPayloadBytesMax + i;
    request.sequence = i;
    request.left.store(Units(request.bytes));
    queue.Push(&request, 0);
    stream += kHeaderBytes + request.bytes;
  }
  queue.Advance(stream);
  EXPECT_TRUE(requests[0].done());
  EXPECT_FALSE(requests[1].done());
  held.Acked(1);
  EXPECT_FALSE(requests[1].done());
  held.Acked(0);
  EXPECT_TRUE(requests[1].done());
}

}  // namespace
}  // namespace tcpx
