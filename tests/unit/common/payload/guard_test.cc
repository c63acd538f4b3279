#include "common/payload/guard.h"

#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

TEST(Guard, FindsEverySingleWrongByte) {
  for (size_t bytes : {1, 2, 7, 64, 1001}) {
    std::vector<uint8_t> data(bytes);
    FillGuard(data.data(), bytes);
    ASSERT_EQ(VerifyGuard(data.data(), bytes), kNoDifference) << bytes;
    for (size_t at = 0; at < bytes; ++at) {
      data[at] ^= 0x10;
      EXPECT_EQ(VerifyGuard(data.data(), bytes), at) << bytes;
      data[at] ^= 0x10;
    }
  }
}

TEST(Guard, FindsTheFirstOfAllWrongBytes) {
  const std::vector<uint8_t> data(64);
  EXPECT_EQ(VerifyGuard(data.data(), data.size()), 0u);
}

TEST(Guard, OfNoBytesIsUntouched) { EXPECT_EQ(VerifyGuard(nullptr, 0), kNoDifference); }

}  // namespace
}  // namespace tcpx
