#include "net_socket/send/stripe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/seed.h"

namespace tcpx {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kLeast = 64 * kKiB;
constexpr size_t kMost = 512 * kKiB;
constexpr double kWhole = 1;

double Share(Rng* rng) { return static_cast<double>(rng->Between(0, 100)) / 100; }

TEST(StripeCutTest, Table) {
  struct Row {
    size_t rest, want, expected;
  };
  const Row rows[] = {
      {0, 512 * kKiB, 0},
      {1, 512 * kKiB, 1},
      {127, 1, 127},
      {64 * kKiB, 1, 64 * kKiB},
      // A tail below the minimum would remain: it is taken along.
      {64 * kKiB + 1, 1, 64 * kKiB + 1},
      {128 * kKiB - 1, 1, 128 * kKiB - 1},
      {128 * kKiB, 1, 64 * kKiB},
      {128 * kKiB + 1, 1, 64 * kKiB},
      // The wish is rounded down to a cut, within the limits.
      {1024 * kKiB, 100 * kKiB + 1, 100 * kKiB},
      {1024 * kKiB, 100 * kKiB + 127, 100 * kKiB},
      {1024 * kKiB, 100 * kKiB + 128, 100 * kKiB + 128},
      {4096 * kKiB, 0, 64 * kKiB},
      {4096 * kKiB, ~size_t{0}, 512 * kKiB},
      {512 * kKiB, 512 * kKiB, 512 * kKiB},
      {512 * kKiB + 1, 512 * kKiB, 512 * kKiB + 1},
      {576 * kKiB - 1, 512 * kKiB, 576 * kKiB - 1},
      {576 * kKiB, 512 * kKiB, 512 * kKiB},
      {kMessageBytesMax, 512 * kKiB, 512 * kKiB},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.expected, Striper::ChunkBytes(row.rest, row.want, kLeast, kMost)) << row.rest << " " << row.want;
  }
}

TEST(StripeCutTest, NeverMoreThanALengthOnTheWireHolds) {
  constexpr size_t kWide = kMessageBytesMax;
  EXPECT_EQ(kChunkBytesMax, Striper::ChunkBytes(kWide, kWide, kWide, kWide));
}

class StriperTest : public ::testing::Test {
 protected:
  SendRequest* Post(Striper* striper, size_t bytes) {
    requests_.push_back(std::make_unique<SendRequest>());
    SendRequest* request = requests_.back().get();
    request->bytes = bytes;
    request->sequence = requests_.size() - 1;
    request->left.store(Units(bytes));
    striper->Post(request);
    return request;
  }

  std::vector<std::unique_ptr<SendRequest>> requests_;
};

TEST_F(StriperTest, ChunksCoverEachMessageInOrder) {
  Striper striper(32, kMost);
  Rng rng(TestSeed());
  for (int i = 0; i < 32; ++i) Post(&striper, rng.Between(1, 3000 * kKiB));
  size_t message = 0, offset = 0;
  Chunk chunk;
  while (striper.Pull(rng.Between(0, 1000 * kKiB), Share(&rng), kLeast, &chunk)) {
    ASSERT_EQ(requests_[message].get(), chunk.request);
    EXPECT_EQ(offset, chunk.offset);
    ASSERT_LT(0u, chunk.length);
    EXPECT_EQ(0u, chunk.offset % kCutBytes);
    offset += chunk.length;
    Striper::Sent(chunk);
    EXPECT_EQ(offset == chunk.request->bytes, chunk.request->done());
    if (offset == chunk.request->bytes) {
      EXPECT_TRUE(chunk.length >= kLeast || chunk.length == chunk.request->bytes);
      ++message;
      offset = 0;
    }
  }
  EXPECT_EQ(32u, message);
  EXPECT_TRUE(striper.drained());
}

TEST_F(StriperTest, DrainedTellsWhetherAnythingIsLeft) {
  Striper striper(4, kMost);
  Chunk chunk;
  EXPECT_TRUE(striper.drained());
  EXPECT_FALSE(striper.Pull(1, kWhole, kLeast, &chunk));
  Post(&striper, 128 * kKiB);
  EXPECT_FALSE(striper.drained());
  EXPECT_TRUE(striper.Pull(1, kWhole, kLeast, &chunk));
  EXPECT_FALSE(striper.drained());
  EXPECT_TRUE(striper.Pull(1, kWhole, kLeast, &chunk));
  EXPECT_TRUE(striper.drained());
  EXPECT_FALSE(striper.Pull(1, kWhole, kLeast, &chunk));
}

TEST_F(StriperTest, AnEmptyMessageIsOneChunk) {
  Striper striper(4, kMost);
  SendRequest* request = Post(&striper, 0);
  Chunk chunk;
  ASSERT_TRUE(striper.Pull(1, kWhole, kLeast, &chunk));
  EXPECT_EQ(0u, chunk.length);
  EXPECT_FALSE(request->done());
  Striper::Sent(chunk);
  EXPECT_TRUE(request->done());
  EXPECT_TRUE(striper.drained());
}

TEST_F(StriperTest, OneCutAndItsNeighbours) {
  const size_t cut = 64 * kKiB;
  for (const size_t bytes : {size_t{1}, cut - 1, cut, cut + 1, 2 * cut - 1, 2 * cut, 2 * cut + 1}) {
    Striper striper(4, kMost);
    Post(&striper, bytes);
    size_t total = 0, chunks = 0;
    Chunk chunk;
    while (striper.Pull(1, kWhole, kLeast, &chunk)) {
      total += chunk.length;
      ++chunks;
    }
    EXPECT_EQ(bytes, total);
    EXPECT_EQ(bytes < 2 * cut ? 1u : 2u, chunks) << bytes;
  }
}

TEST_F(StriperTest, ALaneTakesItsShareOfAllThatIsPosted) {
  Striper striper(4, kMost);
  Post(&striper, 1024 * kKiB);
  Post(&striper, 1024 * kKiB);
  Chunk chunk;
  ASSERT_TRUE(striper.Pull(512 * kKiB, 0.125, kLeast, &chunk));
  EXPECT_EQ(256 * kKiB, chunk.length) << "an eighth of 2 MiB";
  ASSERT_TRUE(striper.Pull(100 * kKiB, 0.5, kLeast, &chunk));
  EXPECT_EQ(100 * kKiB, chunk.length) << "what it wants is the most it gets";
  ASSERT_TRUE(striper.Pull(512 * kKiB, 0, kLeast, &chunk));
  EXPECT_EQ(64 * kKiB, chunk.length) << "and the limit the least";
}

// Lanes pull at the same time while messages are posted: each byte exactly once, and on each lane in order.
TEST_F(StriperTest, LanesPullConcurrently) {
  constexpr size_t kMessages = 400;
  Striper striper(512, 4 * kKiB);
  struct Pulled {
    uint64_t sequence;
    size_t offset, length;
  };
  std::vector<std::vector<Pulled>> by_lane(4);
  for (size_t i = 0; i < kMessages; ++i) {
    requests_.push_back(std::make_unique<SendRequest>());
    requests_.back()->bytes = 1 + i * 37 % 20000;
    requests_.back()->sequence = i;
    requests_.back()->left.store(requests_.back()->bytes);
  }
  std::atomic<bool> posted{false};
  std::vector<std::thread> lanes;
  for (std::vector<Pulled>& pulled : by_lane) {
    lanes.emplace_back([&striper, &posted, &pulled] {
      Chunk chunk;
      for (;;) {
        const bool last = posted.load();
        if (striper.Pull(2 * kKiB, kWhole, 1 * kKiB, &chunk)) {
          pulled.push_back({chunk.request->sequence, chunk.offset, chunk.length});
          Striper::Sent(chunk);
        } else if (last) {
          return;
        }
      }
    });
  }
  for (size_t i = 0; i < kMessages; ++i) striper.Post(requests_[i].get());
  posted.store(true);
  for (std::thread& lane : lanes) lane.join();
  std::vector<Pulled> all;
  for (const std::vector<Pulled>& pulled : by_lane) {
    for (size_t i = 1; i < pulled.size(); ++i) {
      const auto before = std::make_pair(pulled[i - 1].sequence, pulled[i - 1].offset);
      EXPECT_LT(before, std::make_pair(pulled[i].sequence, pulled[i].offset));
    }
    all.insert(all.end(), pulled.begin(), pulled.end());
  }
  std::sort(all.begin(), all.end(), [](const Pulled& a, const Pulled& b) {
    return std::make_pair(a.sequence, a.offset) < std::make_pair(b.sequence, b.offset);
  });
  size_t message = 0, offset = 0;
  for (const Pulled& one : all) {
    ASSERT_EQ(message, one.sequence);
    ASSERT_EQ(offset, one.offset);
    offset += one.length;
    if (offset < requests_[message]->bytes) continue;
    EXPECT_TRUE(requests_[message]->done());
    ++message;
    offset = 0;
  }
  EXPECT_EQ(kMessages, message);
}

}  // namespace
}  // namespace tcpx
