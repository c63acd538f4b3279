#include "bench/net_bench/pattern.h"

#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

MessageIdentity Identity() {
  MessageIdentity identity;
  identity.seed = 7;
  identity.connection = 3;
  identity.sender = 1;
  identity.message = 42;
  return identity;
}

TEST(Pattern, FindsEverySingleWrongByte) {
  for (size_t bytes : {1, 7, 8, 9, 64, 1001}) {
    std::vector<uint8_t> data(bytes);
    FillPattern(Identity(), data.data(), bytes);
    ASSERT_EQ(VerifyPattern(Identity(), data.data(), bytes), kNoDifference) << bytes;
    for (size_t at = 0; at < bytes; ++at) {
      data[at] ^= 0x10;
      EXPECT_EQ(VerifyPattern(Identity(), data.data(), bytes), at) << bytes;
      data[at] ^= 0x10;
    }
  }
}

TEST(Pattern, ByteByByteIsTheSame) {
  std::vector<uint8_t> data(100);
  FillPattern(Identity(), data.data(), data.size());
  for (size_t at = 0; at < data.size(); ++at) EXPECT_EQ(data[at], PatternByte(Identity(), at)) << at;
}

TEST(Pattern, DependsOnAllOfItsIdentity) {
  std::vector<uint8_t> data(64);
  FillPattern(Identity(), data.data(), data.size());
  std::vector<MessageIdentity> others(4, Identity());
  ++others[0].seed;
  ++others[1].connection;
  others[2].sender = 0;
  ++others[3].message;
  for (const MessageIdentity& other : others) EXPECT_LT(VerifyPattern(other, data.data(), data.size()), 8u);
}

TEST(Pattern, DiffersFromItselfElsewhere) {
  std::vector<uint8_t> data(4096);
  FillPattern(Identity(), data.data(), data.size());
  for (size_t shift : {1, 8, 64, 1024}) {
    EXPECT_NE(VerifyPattern(Identity(), data.data() + shift, 1024), kNoDifference) << shift;
  }
}

TEST(Pattern, EmptyMessageIsFine) { EXPECT_EQ(VerifyPattern(Identity(), nullptr, 0), kNoDifference); }

}  // namespace
}  // namespace bench
}  // namespace tcpx
