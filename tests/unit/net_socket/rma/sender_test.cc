// What a sender loses: nothing, whatever the connection has room for.
#include <cstddef>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "net_socket/rma/rma_sender.h"
#include "tests/unit/net_socket/rma/fake_net.h"

namespace tcpx {
namespace {

using Kinds = std::vector<RmaKind>;

constexpr int64_t kPatienceNs = 60'000'000'000;
constexpr int kNever = 1 << 30;

RmaRecord Hello() {
  RmaRecord hello;
  hello.kind = RmaKind::kHello;
  hello.bytes = 2;
  return hello;
}

class RmaSenderTest : public testing::Test {
 protected:
  absl::Status Progress() {
    bool moved = false;
    return sender_.Progress(&moved);
  }
  void Signal() {
    RmaRecord signal;
    signal.has_signal = true;
    sender_.Add(signal, nullptr, nullptr, nullptr);
  }
  void LongPut(RmaRequest* request) {
    RmaRecord put;
    put.bytes = sizeof(memory_);
    put.follows = true;
    sender_.Add(put, memory_, &region_, request);
  }
  void LongAnswer() {
    RmaRecord answer;
    answer.kind = RmaKind::kGotten;
    answer.bytes = sizeof(memory_);
    answer.follows = true;
    sender_.Add(answer, memory_, &region_, nullptr);
  }

  FakeNet net_;
  char handle_[kHandleBytes] = {};
  char memory_[100] = {};
  RmaRegion region_{5, memory_, sizeof(memory_), MemoryType::kHost, RmaUse::kWindow};
  RmaSender sender_{&net_, nullptr, 0, handle_, Hello()};
};

TEST_F(RmaSenderTest, TheLastSignalsWaitForRoomAndByeComesAlone) {
  sender_.Open();
  ASSERT_TRUE(Progress().ok());
  Signal();
  net_.busy = 2;
  sender_.SayBye(true);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Progress().ok());
  ASSERT_EQ(net_.sent.size(), 3u);
  EXPECT_EQ(KindsIn(net_.sent[0].second), Kinds{RmaKind::kHello});
  EXPECT_EQ(KindsIn(net_.sent[1].second), Kinds{RmaKind::kPut});
  EXPECT_EQ(KindsIn(net_.sent[2].second), Kinds{RmaKind::kBye});
  ASSERT_TRUE(Progress().ok());
  EXPECT_TRUE(sender_.idle());
}

TEST_F(RmaSenderTest, APeerThatHasClosedIsAnErrorOnlyBeforeBye) {
  sender_.Open();
  ASSERT_TRUE(Progress().ok());
  net_.peer_gone = true;
  RmaRequest request;
  LongPut(&request);
  sender_.SayBye(false);
  ASSERT_TRUE(Progress().ok());
  ASSERT_TRUE(Progress().ok());
  EXPECT_TRUE(sender_.idle());
  EXPECT_TRUE(request.done) << "its source is read no more";

  FakeNet other;
  other.peer_gone = true;
  RmaSender sender(&other, nullptr, 0, handle_, Hello());
  sender.Open();
  bool moved = false;
  EXPECT_FALSE(sender.Progress(&moved).ok());
}

TEST_F(RmaSenderTest, MemoryThatGoesWhileItWaitsIsAnErrorAlsoBeforeTheConnection) {
  net_.dials = false;
  RmaRequest request;
  LongPut(&request);
  ASSERT_TRUE(Progress().ok());
  EXPECT_TRUE(sender_.Forget(4, kPatienceNs).ok());
  EXPECT_FALSE(sender_.Forget(5, kPatienceNs).ok());
}

TEST_F(RmaSenderTest, WhatHasLeftItForgets) {
  RmaRequest request;
  LongPut(&request);
  ASSERT_TRUE(Progress().ok());
  ASSERT_EQ(net_.sent.size(), 2u);
  EXPECT_TRUE(sender_.Forget(5, kPatienceNs).ok());
}

TEST_F(RmaSenderTest, AnAnswerThatThePeerHasIsAskedForBeforeItsMemoryGoes) {
  LongAnswer();
  net_.unfinished = 10;
  ASSERT_TRUE(Progress().ok());
  EXPECT_TRUE(sender_.Forget(4, kPatienceNs).ok());
  ASSERT_GT(net_.unfinished, 0) << "it waits for what is of other memory";
  EXPECT_TRUE(sender_.Forget(5, kPatienceNs).ok());
  EXPECT_EQ(net_.unfinished, 0);
}

TEST_F(RmaSenderTest, AnAnswerThatThePeerDoesNotTakeIsLost) {
  LongAnswer();
  net_.unfinished = kNever;
  ASSERT_TRUE(Progress().ok());
  EXPECT_FALSE(sender_.Forget(5, 1'000'000).ok());
}

TEST_F(RmaSenderTest, LongPutsOfOnePassLeaveTogether) {
  sender_.Open();
  ASSERT_TRUE(Progress().ok());
  RmaRequest first;
  RmaRequest second;
  for (RmaRequest* request : {&first, &second}) {
    LongPut(request);
    ASSERT_TRUE(sender_.Flush().ok());
  }
  EXPECT_EQ(net_.sent.size(), 1u) << "the hello's";
  ASSERT_TRUE(Progress().ok());
  ASSERT_EQ(net_.sent.size(), 4u);
  EXPECT_EQ(KindsIn(net_.sent[1].second), (Kinds{RmaKind::kPut, RmaKind::kPut}));
  EXPECT_EQ(net_.next_bytes, (std::vector<size_t>{0, sizeof(memory_), 0, 0}));
}

TEST_F(RmaSenderTest, AShortPutAndAVeryLongOneGoAtOnce) {
  sender_.Open();
  ASSERT_TRUE(Progress().ok());
  Signal();
  ASSERT_TRUE(sender_.Flush().ok());
  EXPECT_EQ(net_.sent.size(), 2u);
  ASSERT_TRUE(Progress().ok());
  std::vector<char> memory(kRmaAloneBytes);
  const RmaRegion region{6, memory.data(), memory.size(), MemoryType::kHost, RmaUse::kWindow};
  RmaRecord put;
  put.bytes = memory.size();
  put.follows = true;
  RmaRequest request;
  sender_.Add(put, memory.data(), &region, &request);
  ASSERT_TRUE(sender_.Flush().ok());
  EXPECT_EQ(net_.sent.size(), 4u);
}

// The youngest is asked when it is sent, so that it leaves.
TEST_F(RmaSenderTest, TheOldestIsAskedInEachLookAndTheOthersNowAndThen) {
  RmaRequest oldest;
  RmaRequest other;
  RmaRequest youngest;
  for (RmaRequest* request : {&oldest, &other, &youngest}) LongPut(request);
  net_.stuck = 1;  // The batch is 0.
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(Progress().ok());
  EXPECT_TRUE(youngest.done);
  EXPECT_FALSE(other.done);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(Progress().ok());
  EXPECT_TRUE(other.done);
  EXPECT_FALSE(oldest.done);
}

TEST_F(RmaSenderTest, AnAnswerThatIsDoneBehindAnotherIsFoundAtOnce) {
  RmaRequest put;
  RmaRequest last;
  LongPut(&put);
  region_.id = 6;
  LongAnswer();
  LongPut(&last);
  net_.stuck = 1;
  ASSERT_TRUE(Progress().ok());
  net_.tests_of_sent = 0;
  EXPECT_TRUE(sender_.Forget(6, kPatienceNs).ok());
  EXPECT_EQ(net_.tests_of_sent, 3) << "of the batch, the put and the answer";
}

TEST_F(RmaSenderTest, MemoryOfAPutThatIsWaitedForGoesAtOnce) {
  RmaRequest request;
  LongPut(&request);
  net_.unfinished = kNever;
  ASSERT_TRUE(Progress().ok());
  EXPECT_TRUE(sender_.Forget(5, kPatienceNs).ok());
  EXPECT_FALSE(sender_.idle());
}

TEST_F(RmaSenderTest, NoticesWhileIdleThatItsConnectionFailed) {
  sender_.Open();
  ASSERT_TRUE(Progress().ok());
  ASSERT_TRUE(Progress().ok());
  net_.broken.insert(sender_.comm());
  absl::Status status;
  for (int i = 0; i < 1000 && status.ok(); ++i) status = Progress();
  EXPECT_FALSE(status.ok());
}

TEST_F(RmaSenderTest, CountsWhatWaits) {
  net_.dials = false;
  RmaRequest first;
  RmaRequest second;
  RmaRecord put;
  sender_.Add(put, nullptr, nullptr, &first);
  LongPut(&second);
  EXPECT_EQ(sender_.waiting(), 2u);
  net_.dials = true;
  ASSERT_TRUE(Progress().ok());
  EXPECT_EQ(sender_.waiting(), 0u);
}

}  // namespace
}  // namespace tcpx
