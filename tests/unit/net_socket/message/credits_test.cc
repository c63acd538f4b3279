// Credits on both ends: what the receiver writes, and how the sender takes what may come from anyone.
#include "net_socket/message/credits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace tcpx {
namespace {

FrameHeader Credit(uint64_t sequence, uint32_t length) {
  FrameHeader header;
  header.kind = FrameKind::kCredit;
  header.sequence = sequence;
  header.length = length;
  return header;
}

// Null, or what is wrong.
const char* Announce(CreditBook* book, uint64_t sequence, const std::vector<int32_t>& tags) {
  return book->Announce(Credit(sequence, static_cast<uint32_t>(tags.size() * sizeof(int32_t))),
                        reinterpret_cast<const char*>(tags.data()));
}

// The sequence that `tag` may have, -1: it is closed.
int64_t Take(CreditBook* book, int32_t tag) {
  uint64_t sequence = 0;
  return book->Take(tag, &sequence) ? static_cast<int64_t>(sequence) : -1;
}

TEST(CreditBookTest, NothingIsOpenBeforeItIsAnnounced) {
  CreditBook book(8);
  EXPECT_EQ(-1, Take(&book, 0));
  ASSERT_EQ(nullptr, Announce(&book, 0, {5, -6}));
  EXPECT_EQ(-1, Take(&book, 0));
  EXPECT_EQ(1, Take(&book, -6));
  EXPECT_EQ(-1, Take(&book, -6));
  EXPECT_EQ(0, Take(&book, 5));
  EXPECT_EQ(-1, Take(&book, 5));
}

TEST(CreditBookTest, OnlyTheOldestUnfilledGroupIsOpen) {
  CreditBook book(8);
  ASSERT_EQ(nullptr, Announce(&book, 0, {1, 2}));
  ASSERT_EQ(nullptr, Announce(&book, 2, {1, 2}));
  ASSERT_EQ(nullptr, Announce(&book, 4, {3, 1}));
  EXPECT_EQ(0, Take(&book, 1));
  EXPECT_EQ(-1, Take(&book, 1));
  EXPECT_EQ(-1, Take(&book, 3));
  EXPECT_EQ(1, Take(&book, 2));
  EXPECT_EQ(2, Take(&book, 1));
  EXPECT_EQ(3, Take(&book, 2));
  EXPECT_EQ(5, Take(&book, 1));
  EXPECT_EQ(4, Take(&book, 3));
  EXPECT_EQ(-1, Take(&book, 3));
}

TEST(CreditBookTest, MembersWithOneTagAreTakenInOrder) {
  CreditBook book(8);
  ASSERT_EQ(nullptr, Announce(&book, 0, {1, 1, 2, 1}));
  EXPECT_EQ(0, Take(&book, 1));
  EXPECT_EQ(1, Take(&book, 1));
  EXPECT_EQ(3, Take(&book, 1));
  EXPECT_EQ(-1, Take(&book, 1));
  EXPECT_EQ(2, Take(&book, 2));
}

TEST(CreditBookTest, EverythingThatCanBeWrong) {
  const int32_t tags[16] = {};
  const char* body = reinterpret_cast<const char*>(tags);
  struct Row {
    const char* name;
    FrameHeader header;
  };
  const Row rows[] = {{"empty", Credit(2, 0)},
                      {"half a tag", Credit(2, 6)},
                      {"a member too many", Credit(2, 20)},
                      {"far too long", Credit(2, kRecordBytesMax)},
                      {"repeated", Credit(0, 4)},
                      {"overlapping", Credit(1, 4)},
                      {"a gap", Credit(3, 4)},
                      {"far ahead", Credit(~uint64_t{0}, 4)}};
  for (const Row& row : rows) {
    CreditBook book(4);
    ASSERT_EQ(nullptr, Announce(&book, 0, {1, 2}));
    EXPECT_NE(nullptr, book.Announce(row.header, body)) << row.name;
    // It changed nothing.
    EXPECT_EQ(nullptr, Announce(&book, 2, {1, 2, 3, 4})) << row.name;
    EXPECT_EQ(0, Take(&book, 1));
  }
}

TEST(CreditBookTest, AFloodEndsAtTheNumberOfRequests) {
  CreditBook book(8);
  for (uint64_t i = 0; i < kRequestsMax; ++i) ASSERT_EQ(nullptr, Announce(&book, i, {1}));
  EXPECT_NE(nullptr, Announce(&book, kRequestsMax, {1}));
  EXPECT_EQ(0, Take(&book, 1));
  EXPECT_EQ(nullptr, Announce(&book, kRequestsMax, {1}));
}

TEST(CreditQueueTest, WhatIsWrittenIsUnderstood) {
  CreditQueue queue;
  EXPECT_TRUE(queue.empty());
  const int tags[] = {7, -8, 1 << 30};
  queue.Push(41, tags, 3);
  ASSERT_EQ(kHeaderBytes + 12, queue.bytes());
  FrameHeader header;
  ASSERT_EQ(nullptr, DecodeHeader(queue.data(), &header));
  EXPECT_EQ(FrameKind::kCredit, header.kind);
  EXPECT_EQ(41u, header.sequence);
  EXPECT_EQ(12u, header.length);
  EXPECT_EQ(0, header.padding);
  EXPECT_EQ(0, std::memcmp(tags, queue.data() + kHeaderBytes, 12));
}

TEST(CreditQueueTest, TakenInAnyPieces) {
  Rng rng(TestSeed());
  CreditQueue queue;
  std::string expected, got;
  uint64_t sequence = 0;
  int refused = 0;
  for (int step = 0; step < 20000; ++step) {
    if (rng.OneIn(2)) {
      if (!queue.HasRoom()) {
        ++refused;
        continue;
      }
      std::vector<int> tags(rng.Between(1, kReceivesMax));
      for (int& tag : tags) tag = static_cast<int>(rng.Next());
      const size_t before = queue.bytes();
      queue.Push(sequence, tags.data(), static_cast<int>(tags.size()));
      sequence += tags.size();
      ASSERT_EQ(before + kHeaderBytes + tags.size() * 4, queue.bytes());
      expected.append(queue.data() + before, queue.bytes() - before);
    } else {
      const size_t taken = rng.Between(0, std::min<size_t>(queue.bytes(), rng.OneIn(50) ? 4000 : 150));
      got.append(queue.data(), taken);
      queue.Advance(taken);
    }
  }
  got.append(queue.data(), queue.bytes());
  EXPECT_EQ(expected, got);
  EXPECT_LT(0, refused);
}

TEST(CreditQueueTest, NeverRunsPastItsEnd) {
  CreditQueue queue(true);
  const int tags[] = {1, 2};
  queue.Push(0, tags, 2);
  queue.Advance(queue.bytes() + 100);
  EXPECT_TRUE(queue.empty());
  EXPECT_TRUE(queue.Rewind(0));
  EXPECT_EQ(kHeaderBytes + 8, queue.bytes());
}

// The n-th message of a tag gets the n-th member with that tag, whatever the others do; and nothing ever waits for
// ever.
TEST(CreditBookTest, RandomGroupsAgainstAModel) {
  Rng rng(TestSeed() + 1);
  CreditBook book(kReceivesMax);
  std::map<int32_t, std::deque<uint64_t>> members, sent;
  uint64_t sequence = 0, taken = 0;
  std::deque<uint64_t> open;  // members of each unfilled group, oldest first
  for (int step = 0; step < 50000; ++step) {
    if (rng.OneIn(6) && open.size() < kRequestsMax) {
      std::vector<int32_t> tags(rng.Between(1, kReceivesMax));
      for (int32_t& tag : tags) tag = static_cast<int32_t>(rng.Between(0, 5));
      ASSERT_EQ(nullptr, Announce(&book, sequence, tags));
      for (int32_t tag : tags) members[tag].push_back(sequence++);
      open.push_back(tags.size());
    }
    const int32_t tag = static_cast<int32_t>(rng.Between(0, 5));
    const int64_t got = Take(&book, tag);
    if (got < 0) continue;
    ++taken;
    ASSERT_FALSE(members[tag].empty());
    EXPECT_EQ(members[tag].front(), static_cast<uint64_t>(got));
    members[tag].pop_front();
    if (--open.front() == 0) open.pop_front();
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (int32_t tag = 0; tag <= 5; ++tag) {
      if (Take(&book, tag) >= 0) moved = true, ++taken;
    }
  }
  EXPECT_EQ(sequence, taken);
}

// The kernel takes credits in parts, sockets die, and the peer says how much it has: the stream stays one.
TEST(CreditQueueTest, GoesOnWhereThePeerSays) {
  const uint64_t seed = TestSeed();
  Rng rng(seed);
  CreditQueue queue(true);
  std::string all, came;
  for (uint64_t i = 0; i < 5000; ++i) {
    const int tags[2] = {static_cast<int>(i), 7};
    queue.Push(2 * i, tags, 2);
    all.append(queue.data() + queue.bytes() - kHeaderBytes - sizeof(tags), kHeaderBytes + sizeof(tags));
    const size_t bytes = rng.Between(0, queue.bytes());
    came.append(queue.data(), bytes);
    queue.Advance(bytes);
    if (rng.OneIn(4)) {
      // At the most what is without its message.
      came.resize(came.size() - rng.Between(0, std::min<size_t>(came.size(), 500)));
      ASSERT_TRUE(queue.Rewind(static_cast<uint32_t>(came.size()))) << "seed " << seed;
    }
    while (queue.bytes() > 1000) {
      came.append(queue.data(), 100);
      queue.Advance(100);
    }
  }
  came.append(queue.data(), queue.bytes());
  EXPECT_TRUE(all == came) << "seed " << seed;
  queue.Advance(queue.bytes());
  EXPECT_FALSE(queue.Rewind(static_cast<uint32_t>(came.size()) + 1));
  EXPECT_FALSE(queue.Rewind(static_cast<uint32_t>(came.size()) - 100000));
}

}  // namespace
}  // namespace tcpx
