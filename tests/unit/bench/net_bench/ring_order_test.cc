#include "bench/net_bench/ring_order.h"

#include <deque>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

// One rank of a simulated ring. A message is read from `data` only when its send completes, as late as possible: a
// piece that is overwritten before shows.
struct Rank {
  RingOrder order;
  std::vector<int> data;
  std::deque<std::vector<int>> inbox;
  uint64_t posted = 0;
  uint64_t done = 0;
  uint64_t received = 0;
};

class Ring {
 public:
  Ring(int ranks, size_t elements, size_t slice) {
    for (int rank = 0; rank < ranks; ++rank) {
      RingOrder::Shape shape;
      shape.rank = rank;
      shape.ranks = ranks;
      shape.elements = elements;
      shape.slice_elements = slice;
      ranks_.push_back(Rank{RingOrder(shape), {}, {}, 0, 0, 0});
      for (size_t i = 0; i < elements; ++i) ranks_.back().data.push_back(static_cast<int>(i) * 100 + rank);
    }
  }

  // Random steps until nothing is left; false when it is stuck.
  bool Run(std::mt19937* random) {
    for (int idle = 0; idle < 100000; ++idle) {
      if (Finished()) return true;
      Rank* rank = &ranks_[(*random)() % ranks_.size()];
      const uint32_t choice = (*random)() % 3;
      const bool moved = choice == 0 ? Post(rank) : choice == 1 ? Complete(rank) : Receive(rank);
      if (moved) idle = 0;
    }
    return false;
  }

  const std::vector<Rank>& ranks() const { return ranks_; }

 private:
  bool Finished() const {
    for (const Rank& rank : ranks_) {
      if (rank.done < rank.order.messages() || rank.received < rank.order.messages()) return false;
    }
    return true;
  }
  bool Post(Rank* rank) {
    if (rank->posted >= rank->order.SendLimit(rank->received)) return false;
    ++rank->posted;
    return true;
  }
  bool Complete(Rank* rank) {
    if (rank->done == rank->posted) return false;
    const RingPiece piece = rank->order.Sent(rank->done++);
    Rank* next = &ranks_[static_cast<size_t>(rank - ranks_.data() + 1) % ranks_.size()];
    next->inbox.emplace_back(rank->data.begin() + static_cast<long>(piece.begin),
                             rank->data.begin() + static_cast<long>(piece.begin + piece.count));
    return true;
  }
  bool Receive(Rank* rank) {
    if (rank->inbox.empty() || rank->received >= rank->order.ReceiveLimit(rank->done)) return false;
    const RingPiece piece = rank->order.Received(rank->received);
    const std::vector<int> message = rank->inbox.front();
    rank->inbox.pop_front();
    EXPECT_EQ(message.size(), piece.count);
    for (size_t i = 0; i < message.size(); ++i) {
      int& target = rank->data[piece.begin + i];
      target = rank->order.Reduces(rank->received) ? target + message[i] : message[i];
    }
    ++rank->received;
    return true;
  }

  std::vector<Rank> ranks_;
};

TEST(RingOrder, EveryRankEndsWithTheSum) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int ranks : {2, 3, 4, 7}) {
    for (size_t elements : {0, 1, 5, 64, 1000}) {
      for (size_t slice : {1, 7, 10000}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, " << elements << " elements, slices of " << slice);
        Ring ring(ranks, elements, slice);
        ASSERT_TRUE(ring.Run(&random)) << "stuck";
        for (const Rank& rank : ring.ranks()) {
          for (size_t i = 0; i < elements; ++i) {
            ASSERT_EQ(rank.data[i], static_cast<int>(i) * 100 * ranks + ranks * (ranks - 1) / 2) << "element " << i;
          }
        }
      }
    }
  }
}

TEST(RingOrder, MovesTheLeastThatARingCan) {
  RingOrder::Shape shape;
  shape.ranks = 4;
  shape.elements = 4000;
  shape.slice_elements = 300;
  const RingOrder order(shape);
  size_t sent = 0;
  for (uint64_t m = 0; m < order.messages(); ++m) sent += order.Sent(m).count;
  EXPECT_EQ(sent, 2u * 3 * 1000);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
