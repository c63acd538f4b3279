#include "bench/nccl_bench/collective.h"

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

TEST(LayoutOf, PartsAreWholeAndEqual) {
  const Layout gather = LayoutOf(Collective::kAllGather, 1000, DataType::kFloat, 2, 4);
  EXPECT_EQ(gather.count, 62u);
  EXPECT_EQ(gather.send_count, 62u);
  EXPECT_EQ(gather.receive_count, 248u);
  EXPECT_EQ(gather.bytes, 992u);
  EXPECT_EQ(gather.in_place_send, 124u);
  EXPECT_EQ(gather.in_place_receive, 0u);
  const Layout scatter = LayoutOf(Collective::kReduceScatter, 1000, DataType::kFloat, 2, 4);
  EXPECT_EQ(scatter.count, 62u);
  EXPECT_EQ(scatter.send_count, 248u);
  EXPECT_EQ(scatter.in_place_receive, 124u);
  const Layout reduce = LayoutOf(Collective::kAllReduce, 1001, DataType::kHalf, 2, 4);
  EXPECT_EQ(reduce.count, 500u);
  EXPECT_EQ(reduce.bytes, 1000u);
}

TEST(LayoutOf, NeverLeavesTheBuffers) {
  for (Collective collective : kCollectives) {
    for (DataType type : kDataTypes) {
      for (uint64_t bytes : {0, 1, 7, 8, 1023, 1024}) {
        for (int rank = 0; rank < 3; ++rank) {
          const Layout layout = LayoutOf(collective, bytes, type, rank, 3);
          const size_t larger = layout.bytes / DataTypeBytes(type);
          EXPECT_LE(layout.bytes, bytes);
          EXPECT_LE(layout.in_place_send + layout.send_count, larger) << CollectiveName(collective);
          EXPECT_LE(layout.in_place_receive + layout.receive_count, larger) << CollectiveName(collective);
        }
      }
    }
  }
}

// The table of nccl-tests' doc/PERFORMANCE.md, for 4 ranks.
TEST(BusFactor, IsThatOfNcclTests) {
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kReduceScatter, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllToAll, 4), 0.75);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kBroadcast, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kReduce, 4), 1);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kSendReceive, 4), 1);
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
