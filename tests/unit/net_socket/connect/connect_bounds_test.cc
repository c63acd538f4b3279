#include "net_socket/connect/connect_bounds.h"

#include <gtest/gtest.h>

#include "common/clock.h"

namespace tcpx {
namespace {

TEST(ConnectBoundsTest, OfTheDefaultsAsTheDocumentationHasIt) {
  const Options options;
  EXPECT_EQ(419500 * kMillisecond, ConnectBoundNs(options));
  EXPECT_EQ(79500 * kMillisecond, PatienceNs(options));
}

TEST(ConnectBoundsTest, TheLargestParametersDoNotOverflow) {
  Options options;
  options.retry_count = 100000;
  options.retry_sleep_ns = 60 * kSecond;
  options.hello_timeout_ns = 600 * kSecond;
  EXPECT_EQ(int64_t{3650} * 86400 * kSecond, ConnectBoundNs(options));
  EXPECT_EQ(int64_t{3650} * 86400 * kSecond, PatienceNs(options));
}

}  // namespace
}  // namespace tcpx
