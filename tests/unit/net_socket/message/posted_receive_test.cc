#include "net_socket/message/posted_receive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

namespace tcpx {
namespace {

FrameHeader Chunk(uint64_t sequence, uint64_t offset, uint32_t length, uint64_t message_bytes) {
  FrameHeader header;
  header.sequence = sequence;
  header.offset = offset;
  header.length = length;
  header.message_bytes = message_bytes;
  return header;
}

class PostedReceiveTest : public ::testing::Test {
 protected:
  ClaimResult Claim(const FrameHeader& chunk) {
    PostedReceive* landing = nullptr;
    const ClaimResult result = table_.Claim(chunk, &landing);
    receive_ = static_cast<PostedReceive*>(landing);
    return result;
  }
  bool ClaimAndLand(const FrameHeader& chunk) {
    EXPECT_EQ(ClaimResult::kClaimed, Claim(chunk));
    return receive_->Landed(chunk.length, chunk.message_bytes);
  }

  PostedReceiveTable table_{4};
  char buffer_[1000];
  PostedReceive* receive_ = nullptr;
};

TEST_F(PostedReceiveTest, NotPostedUntilPosted) {
  EXPECT_EQ(ClaimResult::kNotPosted, Claim(Chunk(0, 0, 10, 10)));
  PostedReceive* posted = table_.Post(buffer_, 10, 5);
  EXPECT_EQ(1u, table_.posted());
  ASSERT_EQ(ClaimResult::kClaimed, Claim(Chunk(0, 0, 10, 10)));
  EXPECT_EQ(posted, receive_);
  EXPECT_EQ(buffer_, receive_->data);
  EXPECT_EQ(5, receive_->tag);
  EXPECT_EQ(ClaimResult::kNotPosted, Claim(Chunk(1, 0, 10, 10)));
  EXPECT_EQ(ClaimResult::kNotPosted, Claim(Chunk(~uint64_t{0}, 0, 10, 10)));
}

TEST_F(PostedReceiveTest, DoneWithTheLastByteInAnyOrder) {
  PostedReceive* receive = table_.Post(buffer_, 300, 0);
  EXPECT_FALSE(ClaimAndLand(Chunk(0, 256, 44, 300)));
  EXPECT_FALSE(ClaimAndLand(Chunk(0, 0, 128, 300)));
  EXPECT_FALSE(receive->done.load());
  EXPECT_TRUE(ClaimAndLand(Chunk(0, 128, 128, 300)));
  EXPECT_TRUE(receive->done.load());
  EXPECT_EQ(300u, receive->message_bytes.load());
}

TEST_F(PostedReceiveTest, ClaimedIsNotLanded) {
  PostedReceive* receive = table_.Post(buffer_, 300, 0);
  ASSERT_EQ(ClaimResult::kClaimed, Claim(Chunk(0, 0, 200, 300)));
  EXPECT_TRUE(!ClaimAndLand(Chunk(0, 200, 100, 300)));
  EXPECT_FALSE(receive->done.load());
  EXPECT_TRUE(receive_->Landed(200, 300));
}

TEST_F(PostedReceiveTest, AnEmptyMessageLandsOnce) {
  PostedReceive* receive = table_.Post(buffer_, 0, 0);
  EXPECT_TRUE(ClaimAndLand(Chunk(0, 0, 0, 0)));
  EXPECT_TRUE(receive->done.load());
  EXPECT_EQ(0u, receive->message_bytes.load());
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(0, 0, 0, 0)));
}

TEST_F(PostedReceiveTest, SmallerThanItsReceive) {
  PostedReceive* receive = table_.Post(buffer_, 1000, 0);
  EXPECT_TRUE(ClaimAndLand(Chunk(0, 0, 1, 1)));
  EXPECT_EQ(1u, receive->message_bytes.load());
}

TEST_F(PostedReceiveTest, LargerThanItsReceive) {
  table_.Post(buffer_, 99, 0);
  EXPECT_EQ(ClaimResult::kTooLarge, Claim(Chunk(0, 0, 100, 100)));
  ASSERT_NE(nullptr, receive_);
  EXPECT_EQ(99u, receive_->capacity);
  EXPECT_FALSE(receive_->done.load());
  table_.Post(buffer_, 0, 0);
  EXPECT_EQ(ClaimResult::kTooLarge, Claim(Chunk(1, 0, 1, 1)));
}

TEST_F(PostedReceiveTest, RepeatsAndOverlapsNeverExceedTheMessage) {
  PostedReceive* receive = table_.Post(buffer_, 300, 0);
  EXPECT_FALSE(ClaimAndLand(Chunk(0, 0, 200, 300)));
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(0, 0, 200, 300)));
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(0, 199, 101, 300)));
  EXPECT_FALSE(receive->done.load());
}

TEST_F(PostedReceiveTest, ARepeatAfterTheEndIsBroken) {
  table_.Post(buffer_, 100, 0);
  EXPECT_TRUE(ClaimAndLand(Chunk(0, 0, 100, 100)));
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(0, 0, 100, 100)));
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(0, 0, 1, 100)));
}

TEST_F(PostedReceiveTest, ChunksThatDisagreeOnTheSizeAreBroken) {
  for (const uint64_t other : {uint64_t{301}, uint64_t{299}}) {
    const uint64_t sequence = table_.posted();
    PostedReceive* receive = table_.Post(buffer_, 400, 0);
    EXPECT_FALSE(ClaimAndLand(Chunk(sequence, 0, 100, 300)));
    EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(sequence, 100, 100, other)));
    EXPECT_FALSE(receive->done.load());
  }
}

// A message that is claimed whole can complete, and its slot be posted again, while another lane's chunk that names
// another size is still being looked at. That chunk once got the receive and compared sizes with the slot's next
// message: it could write into a buffer that had been given back. Only the race of three threads showed it.
TEST_F(PostedReceiveTest, AWholeMessageIsGivenToNoOtherChunk) {
  table_.Post(buffer_, 1000, 0);
  ASSERT_EQ(ClaimResult::kClaimed, Claim(Chunk(0, 0, 100, 100)));
  for (const uint64_t other : {uint64_t{300}, kMessageBytesMax}) {
    EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(0, 100, 100, other)));
    EXPECT_EQ(nullptr, receive_) << other;
  }
  table_.Post(buffer_, 0, 0);
  ASSERT_EQ(ClaimResult::kClaimed, Claim(Chunk(1, 0, 0, 0)));
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(1, 0, 1, 2)));
  EXPECT_EQ(nullptr, receive_);
}

TEST_F(PostedReceiveTest, TheLargestMessageInTheLargestChunks) {
  PostedReceive* receive = table_.Post(buffer_, kMessageBytesMax, 0);
  FrameHeader most = Chunk(0, 0, kChunkBytesMax, kMessageBytesMax);
  for (; most.offset < kMessageBytesMax; most.offset += most.length) {
    EXPECT_EQ(most.offset + most.length == kMessageBytesMax, ClaimAndLand(most));
  }
  EXPECT_TRUE(receive->done.load());
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(0, 0, 1, kMessageBytesMax)));
}

TEST_F(PostedReceiveTest, AStaleSequenceNeverTouchesItsSlotsNextMessage) {
  for (int i = 0; i < 4; ++i) {
    table_.Post(buffer_, 100, 0);
    EXPECT_TRUE(ClaimAndLand(Chunk(static_cast<uint64_t>(i), 0, 100, 100)));
  }
  PostedReceive* reused = table_.Post(buffer_ + 500, 100, 0);
  EXPECT_EQ(4u, reused->sequence);
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(0, 0, 100, 100)));
  // Sequences that share the low bits with the posted one.
  EXPECT_EQ(ClaimResult::kBroken, Claim(Chunk(3, 0, 1, 100)));
  EXPECT_TRUE(ClaimAndLand(Chunk(4, 0, 100, 100)));
}

TEST_F(PostedReceiveTest, SlotsComeRoundForEver) {
  for (uint64_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(i, table_.posted());
    PostedReceive* receive = table_.Post(buffer_, 100, static_cast<int32_t>(i));
    EXPECT_EQ(receive, &table_.NextSlot() - (i % 4 == 3 ? -3 : 1));
    EXPECT_TRUE(ClaimAndLand(Chunk(i, 0, 7, 7)));
    receive->in_use = false;
  }
}

TEST_F(PostedReceiveTest, RoomForSeveral) {
  EXPECT_TRUE(table_.HasRoom(4));
  PostedReceive* first = table_.Post(buffer_, 10, 0);
  PostedReceive* second = table_.Post(buffer_, 10, 0);
  EXPECT_TRUE(table_.HasRoom(2));
  EXPECT_FALSE(table_.HasRoom(3));
  second->in_use = false;
  EXPECT_FALSE(table_.HasRoom(3));
  first->in_use = false;
  EXPECT_TRUE(table_.HasRoom(4));
}

TEST_F(PostedReceiveTest, AnotherTagIsBrokenWhereTagsCount) {
  PostedReceiveTable matching(4, true);
  matching.Post(buffer_, 10, 5);
  FrameHeader chunk = Chunk(0, 0, 5, 10);
  chunk.tag = 6;
  PostedReceive* landing = nullptr;
  EXPECT_EQ(ClaimResult::kBroken, matching.Claim(chunk, &landing));
  table_.Post(buffer_, 10, 5);
  EXPECT_EQ(ClaimResult::kClaimed, table_.Claim(chunk, &landing));
}

TEST_F(PostedReceiveTest, AMatchingTagIsClaimed) {
  PostedReceiveTable matching(4, true);
  matching.Post(buffer_, 10, 5);
  FrameHeader chunk = Chunk(0, 0, 10, 10);
  chunk.tag = 5;
  PostedReceive* landing = nullptr;
  EXPECT_EQ(ClaimResult::kClaimed, matching.Claim(chunk, &landing));
}

// Lanes claim and land parts of the same messages while the calling thread posts the next ones.
TEST_F(PostedReceiveTest, LanesShareMessages) {
  constexpr uint64_t kMessages = 3000;
  constexpr uint32_t kPart = 128;
  constexpr int kLanes = 4;
  std::vector<char> data(4 * kPart * kLanes, 0);
  std::atomic<uint64_t> completed{0};
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.emplace_back([&, lane] {
      for (uint64_t sequence = 0; sequence < kMessages; ++sequence) {
        const FrameHeader chunk = Chunk(sequence, static_cast<uint64_t>(lane) * kPart, kPart, kPart * kLanes);
        PostedReceive* receive = nullptr;
        ClaimResult result;
        while ((result = table_.Claim(chunk, &receive)) == ClaimResult::kNotPosted) std::this_thread::yield();
        ASSERT_EQ(ClaimResult::kClaimed, result);
        std::memset(receive->data + chunk.offset, static_cast<int>(sequence % 100) + 1, kPart);
        if (receive->Landed(chunk.length, chunk.message_bytes)) completed.fetch_add(1);
      }
    });
  }
  for (uint64_t sequence = 0; sequence < kMessages; ++sequence) {
    char* buffer = data.data() + (sequence % 4) * kPart * kLanes;
    PostedReceive* receive = table_.Post(buffer, kPart * kLanes, 0);
    if (sequence % 2 == 0) continue;  // two in flight
    while (!receive->done.load(std::memory_order_acquire)) std::this_thread::yield();
    const char expected = static_cast<char>(sequence % 100 + 1);
    EXPECT_EQ(kPart * kLanes, std::count(buffer, buffer + kPart * kLanes, expected)) << sequence;
    const uint64_t before = (sequence - 1) % 4;
    PostedReceive* previous = receive - (before == sequence % 4 - 1 ? 1 : -3);
    while (!previous->done.load(std::memory_order_acquire)) std::this_thread::yield();
  }
  for (std::thread& lane : lanes) lane.join();
  EXPECT_EQ(kMessages, completed.load());
}

}  // namespace
}  // namespace tcpx
