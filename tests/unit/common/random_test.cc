#include "common/random.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

TEST(RandomTest, FillsEveryByteAndNothingElse) {
  constexpr size_t kBytes = 1000;  // larger than one getrandom call must deliver in one piece
  std::vector<uint8_t> seen(kBytes, 0);
  for (int round = 0; round < 20; ++round) {
    std::vector<uint8_t> data(kBytes + 2, 0);
    ASSERT_TRUE(FillRandom(data.data() + 1, kBytes).ok());
    EXPECT_EQ(data.front(), 0);
    EXPECT_EQ(data.back(), 0);
    for (size_t i = 0; i < kBytes; ++i) seen[i] |= data[i + 1];
  }
  // One byte stays 0 over 20 rounds with a probability of 2^-160.
  EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 0);
}

TEST(RandomTest, DoesNotRepeat) {
  std::set<std::string> tickets;
  for (int i = 0; i < 100; ++i) {
    std::string ticket(16, '\0');
    ASSERT_TRUE(FillRandom(ticket.data(), ticket.size()).ok());
    EXPECT_TRUE(tickets.insert(ticket).second);
  }
}

TEST(RandomTest, NothingToFillIsOk) { EXPECT_TRUE(FillRandom(nullptr, 0).ok()); }

}  // namespace
}  // namespace tcpx
