// What a lane holds until it is acknowledged: a model of a stream whose sockets die at any byte.
#include "net_socket/send/held_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <string>

#include "tests/support/seed.h"

namespace tcpx {
namespace {

constexpr size_t kFrames = 16;
constexpr size_t kCopyBytes = 4096;

// One message of one frame, whose buffer is overwritten as soon as its request is done.
struct Message {
  SendRequest request;
  std::string payload;
  bool scribbled = false;
};

std::string Text(const iovec* iov, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text.append(static_cast<const char*>(iov[i].iov_base), iov[i].iov_len);
  return text;
}

class StreamModel {
 public:
  explicit StreamModel(uint64_t seed) : rng_(seed) {}

  void Step() {
    if (held_.resending()) {
      SendAgain();
    } else if (rng_.OneIn(12)) {
      LoseSocket();
    } else if (frame_rest_.empty() && held_.room() > 0) {
      BeginFrame();
    } else if (!frame_rest_.empty()) {
      SendSome();
    }
    if (rng_.OneIn(3)) Acknowledge(rng_.Between(0, queued_));
    Scribble();
  }

  void Finish() {
    for (int i = 0; i < 10000 && (held_.resending() || !frame_rest_.empty()); ++i) {
      held_.resending() ? SendAgain() : SendSome();
    }
    Acknowledge(queued_);
    Scribble();
    EXPECT_EQ(expected_, received_);
    EXPECT_TRUE(held_.empty());
    EXPECT_FALSE(held_.awaited());
    for (const auto& message : messages_) EXPECT_TRUE(message->request.done());
  }

 private:
  void BeginFrame() {
    auto message = std::make_unique<Message>();
    message->payload.resize(rng_.OneIn(5) ? 0 : rng_.Between(1, rng_.OneIn(4) ? 6000 : 400));
    for (char& byte : message->payload) byte = static_cast<char>(rng_.Next());
    message->request.left.store(std::max<size_t>(message->payload.size(), 1));
    const uint16_t padding = static_cast<uint16_t>(rng_.OneIn(4) ? rng_.Between(1, 3000) : 0);
    std::string header(kHeaderBytes, static_cast<char>(messages_.size()));
    held_.Begin(header.data(), {message->payload.data(), message->payload.size(), padding}, &message->request);
    frame_rest_ = header + message->payload + std::string(padding, '\0');
    expected_ += frame_rest_;
    messages_.push_back(std::move(message));
  }

  void SendSome() {
    const size_t bytes = rng_.Between(1, frame_rest_.size());
    Give(frame_rest_.substr(0, bytes));
    frame_rest_.erase(0, bytes);
    held_.Sent(bytes);
    if (frame_rest_.empty()) held_.Finish(rng_.OneIn(2));
  }

  void SendAgain() {
    iovec iov[8];
    const int count = held_.GatherAgain(iov, 8);
    ASSERT_GT(count, 0);
    std::string text = Text(iov, count);
    text.resize(rng_.Between(1, text.size()));
    Give(text);
    held_.SentAgain(text.size());
  }

  void Give(const std::string& bytes) {
    received_ += bytes;
    queued_ += bytes.size();
  }

  // The first of what is queued.
  void Acknowledge(uint64_t bytes) {
    queued_ -= bytes;
    held_.Acked(static_cast<int64_t>(queued_));
  }

  // Whatever was not acknowledged may or may not have come.
  void LoseSocket() {
    const uint64_t lost = rng_.Between(0, queued_);
    received_.resize(received_.size() - lost);
    queued_ = 0;
    EXPECT_TRUE(held_.Rewind(received_.size()));
    EXPECT_EQ(lost > 0, held_.resending());
  }

  void Scribble() {
    for (auto& message : messages_) {
      if (message->scribbled || !message->request.done()) continue;
      message->scribbled = true;
      std::fill(message->payload.begin(), message->payload.end(), '\x5A');
    }
  }

  Rng rng_;
  HeldFrames held_{kFrames, kCopyBytes};
  std::deque<std::unique_ptr<Message>> messages_;
  std::string frame_rest_;  // begun, and not sent
  std::string expected_;
  std::string received_;
  uint64_t queued_ = 0;  // unacknowledged, of the socket at hand
};

// A peer that has taken all closes, and the socket dies before that is acknowledged.
TEST(HeldFramesTest, APeerThatClosesSaysWhatItHas) {
  HeldFrames held(4, 64);
  const std::string header(kHeaderBytes, 'h');
  const std::string payload(100, 'p');
  SendRequest requests[2];
  for (SendRequest& request : requests) {
    request.left.store(payload.size());
    held.Begin(header.data(), {payload.data(), payload.size(), 0}, &request);
    held.Sent(kHeaderBytes + payload.size());
    held.Finish(true);
  }
  held.PeerTook(kHeaderBytes + payload.size());
  EXPECT_TRUE(requests[0].done());
  EXPECT_FALSE(requests[1].done() || held.all_acked());
  held.PeerTook(10);                                     // Less than is known.
  held.Acked(static_cast<int64_t>(2 * payload.size()));  // What the dead socket held.
  held.PeerTook(1 << 20);                                // More than was sent.
  EXPECT_FALSE(requests[1].done());
  EXPECT_EQ(kHeaderBytes + payload.size(), held.acked());
  held.PeerTook(2 * (kHeaderBytes + payload.size()));
  EXPECT_TRUE(requests[1].done() && held.all_acked() && held.empty());
}

// Frames have so much room, and copies so much; what is not copied stays its request's.
TEST(HeldFramesTest, APeerThatAcknowledgesNothingFillsItsRoomOnly) {
  constexpr size_t kRoom = 4;
  HeldFrames held(kRoom, 64);
  const std::string header(kHeaderBytes, 'h');
  const std::string payload(40, 'p');
  SendRequest requests[kRoom];
  for (size_t i = 0; i < kRoom; ++i) {
    ASSERT_EQ(kRoom - i, held.room());
    requests[i].left.store(payload.size());
    held.Begin(header.data(), {payload.data(), payload.size(), 0}, &requests[i]);
    held.Sent(kHeaderBytes + payload.size());
    held.Finish(true);
    EXPECT_EQ(i == 0, requests[i].done()) << "room for one copy";
  }
  EXPECT_EQ(0u, held.room());
  held.Acked(0);
  EXPECT_EQ(kRoom, held.room());
  for (const SendRequest& request : requests) EXPECT_TRUE(request.done());
}

// It says so while what it has is being sent again, and the kernel takes that too.
TEST(HeldFramesTest, APeerThatClosesIsSentNothingTwice) {
  HeldFrames held(4, 64);
  const std::string header(kHeaderBytes, 'h');
  const std::string payload(100, 'p');
  SendRequest request;
  request.left.store(payload.size());
  held.Begin(header.data(), {payload.data(), payload.size(), 0}, &request);
  held.Sent(kHeaderBytes + payload.size());
  ASSERT_TRUE(held.Rewind(0));
  iovec iov[3];
  const std::string again = Text(iov, held.GatherAgain(iov, 3));
  held.PeerTook(kHeaderBytes + 50);
  held.SentAgain(again.size());
  EXPECT_EQ(kHeaderBytes + payload.size(), held.cursor());
  held.Acked(0);
  EXPECT_TRUE(held.all_acked() && request.done() && held.empty());
}

TEST(HeldFramesTest, EveryByteComesOnceHoweverSocketsDie) {
  const uint64_t seed = TestSeed();
  for (uint64_t run = 0; run < 200; ++run) {
    StreamModel model(seed + run);
    for (int i = 0; i < 300; ++i) model.Step();
    model.Finish();
    ASSERT_FALSE(HasFailure()) << "seed " << seed << " run " << run;
  }
}

TEST(HeldFramesTest, APeerThatLostWhatItsKernelAcknowledgedIsRefused) {
  HeldFrames held(4, 0);
  SendRequest request;
  request.left.store(10);
  const std::string header(kHeaderBytes, 'h');
  held.Begin(header.data(), {"0123456789", 10, 0}, &request);
  held.Sent(kHeaderBytes + 10);
  held.Finish(false);
  held.Acked(4);
  EXPECT_FALSE(request.done());
  EXPECT_FALSE(held.Rewind(kHeaderBytes + 5));
  EXPECT_FALSE(held.Rewind(kHeaderBytes + 11));
  EXPECT_TRUE(held.Rewind(kHeaderBytes + 6));
  EXPECT_TRUE(held.resending());
  EXPECT_TRUE(held.Rewind(kHeaderBytes + 10));
  EXPECT_TRUE(request.done());
}

TEST(HeldFramesTest, WhatTheKernelUsesIsNotDoneWhenItIsAcknowledged) {
  HeldFrames held(4, 0);
  SendRequest request;
  request.left.store(10);
  const std::string header(kHeaderBytes, 'h');
  held.Begin(header.data(), {"0123456789", 10, 0}, &request);
  const uint64_t frame = held.Pin();
  held.Sent(kHeaderBytes + 10);
  held.Acked(0);
  EXPECT_FALSE(request.done());
  held.Unpin(frame);
  EXPECT_TRUE(request.done());
}

}  // namespace
}  // namespace tcpx
