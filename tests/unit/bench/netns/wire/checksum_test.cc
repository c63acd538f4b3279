#include "bench/netns/wire/checksum.h"

#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace wire {
namespace {

TEST(Checksum, OfTheExampleInRfc1071) {
  const std::vector<uint8_t> data = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(Fold(AddWords(data.data(), data.size())), 0xddf2);
  EXPECT_EQ(Checksum(data.data(), data.size()), 0x220d);
}

TEST(Checksum, OddLastByteIsTheHighHalf) {
  const std::vector<uint8_t> data = {0x12, 0x34, 0x56};
  EXPECT_EQ(Fold(AddWords(data.data(), data.size())), 0x1234 + 0x5600);
}

TEST(Checksum, OfAHeaderWithItsChecksumIsZero) {
  // RFC 791's fields, as many textbooks print them.
  const std::vector<uint8_t> header = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                                       0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
  EXPECT_EQ(Checksum(header.data(), header.size()), 0);
}

TEST(PseudoHeader, AddsProtocolAndBothHalvesOfTheLength) {
  const std::vector<uint8_t> addresses = {10, 0, 0, 1, 10, 0, 0, 2};
  EXPECT_EQ(Fold(PseudoHeader(addresses.data(), 4, 6, 0x10002)), 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 6 + 1 + 2);
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
