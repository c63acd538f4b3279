// What two workers say to each other: handles of thousands of connections, both ways at once.
#include "bench/net_bench/control.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tcpx {
namespace bench {
namespace {

// More than a socket takes.
constexpr size_t kMuch = 8 << 20;

TEST(ControlTest, BothMaySayMuchAtOnce) {
  auto ends = ControlPair();
  ASSERT_TRUE(ends.ok());
  Control* const a = ends->first.get();
  Control* const b = ends->second.get();
  const std::vector<uint8_t> of_a(kMuch, 1);
  const std::vector<uint8_t> of_b(kMuch, 2);
  std::vector<uint8_t> heard_by_b;
  absl::Status said_by_b;
  std::thread other([&] { said_by_b = b->Exchange(&of_b, b, &heard_by_b, kMuch); });
  std::vector<uint8_t> heard_by_a;
  EXPECT_TRUE(a->Exchange(&of_a, a, &heard_by_a, kMuch).ok());
  other.join();
  EXPECT_TRUE(said_by_b.ok()) << said_by_b;
  EXPECT_TRUE(of_a == heard_by_b);
  EXPECT_TRUE(of_b == heard_by_a);
}

TEST(ControlTest, OneMaySayNothing) {
  auto ends = ControlPair();
  ASSERT_TRUE(ends.ok());
  const std::vector<uint8_t> said(kMuch, 3);
  std::vector<uint8_t> heard;
  std::thread other([&] { (void)ends->first->Exchange(&said, ends->first.get(), nullptr, 0); });
  EXPECT_TRUE(ends->second->Exchange(nullptr, ends->second.get(), &heard, kMuch).ok());
  other.join();
  EXPECT_TRUE(said == heard);
}

TEST(ControlTest, WhoSaysTooMuchIsNotHeard) {
  auto ends = ControlPair();
  ASSERT_TRUE(ends.ok());
  const std::vector<uint8_t> said(kMuch, 4);
  std::vector<uint8_t> heard;
  absl::Status told;
  std::thread other([&] { told = ends->first->Exchange(&said, ends->first.get(), nullptr, 0); });
  const absl::Status status = ends->second->Exchange(&said, ends->second.get(), &heard, 1000);
  other.join();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_FALSE(told.ok());
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
