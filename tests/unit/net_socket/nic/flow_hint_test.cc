// What becomes of the connections that NCCL announces.
#include "net_socket/nic/flow_hint.h"

#include <gtest/gtest.h>

#include <climits>

namespace tcpx {
namespace {

TEST(FlowHintTest, ManyConnectionsShareBulkLanes) {
  struct Row {
    int peers, flows_per_peer, lanes, bulk_min, expected;
  };
  const Row rows[] = {
      {-1, -1, 9, 1, 9},
      {1, 1, 9, 1, 9},
      {4, 2, 9, 1, 9},  // two channels of a collective
      {4, 3, 9, 1, 7},
      {4, 4, 9, 1, 5},
      {4, 8, 9, 1, 5},
      {64, 1, 9, 1, 5},
      {1000, 32, 9, 1, 5},
      {INT_MAX, INT_MAX, 9, 1, 5},
      {INT_MAX, INT_MAX, 64, 1, 5},
      // Fewer than four are not shared.
      {4, 4, 4, 1, 4},
      {4, 8, 4, 1, 4},
      {4, 8, 2, 1, 2},
      {0, 0, 9, 1, 9},
      {INT_MIN, 7, 9, 1, 9},
      // A single lane is lane 0, which none can do without.
      {1000, 32, 1, 1, 1},
      // A bulk lane for each of several interfaces.
      {1000, 32, 9, 6, 7},
      {1000, 32, 3, 6, 3},
      {4, 3, 9, 4, 7},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(row.expected, ShareLanes(row.lanes, row.bulk_min, {row.peers, row.flows_per_peer}))
        << row.peers << " x " << row.flows_per_peer << ", " << row.lanes << " lanes, at least " << row.bulk_min;
  }
}

TEST(FlowHintTest, ManyConnectionsShareWhatMayWait) {
  constexpr int kKiB = 1024;
  EXPECT_EQ(-1, ShareUnsent({}));
  EXPECT_EQ(-1, ShareUnsent({8, 8}));
  EXPECT_EQ((64 << 20) / 65, ShareUnsent({65, 1}));
  EXPECT_EQ(512 * kKiB, ShareUnsent({16, 8}));
  EXPECT_EQ(256 * kKiB, ShareUnsent({1000, 8}));
  EXPECT_EQ(256 * kKiB, ShareUnsent({INT_MAX, INT_MAX}));
}

}  // namespace
}  // namespace tcpx
