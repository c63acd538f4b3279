#include "net_socket/connect/connect_bounds.h"

#include <gtest/gtest.h>

#include "common/clock.h"

namespace tcpx {
namespace {

TEST(ConnectBoundsTest, OfTheDefaultsAsTheDocumentationHasIt) {
  const Options options;
  EXPECT_EQ(419500 * kMillisecond, ConnectBoundNs(options));
  EXPECT_EQ(79500 * kMillisecond, PatienceNs(options));
  EXPECT_EQ(5 * kSecond, AcceptBoundsOf(options).no_progress_ns);
  EXPECT_EQ(499 * kSecond, AcceptBoundsOf(options).incomplete_ns);
  EXPECT_EQ(79500 * kMillisecond, AcceptBoundsOf(options).lost_ns);
}

TEST(ConnectBoundsTest, TheLargestParametersDoNotOverflow) {
  Options options;
  options.retry_count = 100000;
  options.retry_sleep_ns = 60 * kSecond;
  options.hello_timeout_ns = 600 * kSecond;
  EXPECT_EQ(int64_t{3650} * 86400 * kSecond, ConnectBoundNs(options));
  EXPECT_EQ(int64_t{3650} * 86400 * kSecond, PatienceNs(options));
  EXPECT_EQ(int64_t{3650} * 86400 * kSecond, AcceptBoundsOf(options).incomplete_ns);
}

}  // namespace
}  // namespace tcpx
