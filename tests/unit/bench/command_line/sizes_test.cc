#include "bench/command_line/sizes.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

TEST(ParseSize, Accepts) {
  struct Row {
    const char* text;
    uint64_t want;
  };
  for (const Row& row : std::vector<Row>{{"0", 0},
                                         {"8", 8},
                                         {"1K", 1024},
                                         {"64k", 65536},
                                         {"64KB", 65536},
                                         {"64KiB", 65536},
                                         {"128M", 128 << 20},
                                         {"1G", 1 << 30},
                                         {"100B", 100},
                                         {"17179869183G", 17179869183ull << 30}}) {
    ASSERT_TRUE(ParseSize(row.text).ok()) << row.text;
    EXPECT_EQ(*ParseSize(row.text), row.want) << row.text;
  }
}

TEST(ParseSize, Refuses) {
  for (const char* text :
       {"", "K", "B", "-1", "1.5K", "1T", "1KK", " 8", "8 ", "0x10", "17179869184G", "99999999999999999999"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

TEST(FormatSize, IsShortAndExact) {
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(1000), "1000");
  EXPECT_EQ(FormatSize(614400), "600K");
  EXPECT_EQ(FormatSize(1 << 20), "1M");
  EXPECT_EQ(FormatSize(1536 << 20), "1536M");
  EXPECT_EQ(FormatSize(1ull << 30), "1G");
  EXPECT_EQ(FormatSize(1ull << 40), "1024G");
}

TEST(GeometricSweep, ReachesItsEnd) {
  EXPECT_EQ(GeometricSweep(8, 64, 2), (std::vector<uint64_t>{8, 16, 32, 64}));
  EXPECT_EQ(GeometricSweep(8, 63, 2), (std::vector<uint64_t>{8, 16, 32}));
  EXPECT_EQ(GeometricSweep(8, 8, 2), (std::vector<uint64_t>{8}));
  EXPECT_EQ(GeometricSweep(0, 16, 16), (std::vector<uint64_t>{0, 1, 16}));
  EXPECT_EQ(GeometricSweep(0, 0, 2), (std::vector<uint64_t>{0}));
}

TEST(GeometricSweep, DoesNotOverflow) {
  const uint64_t most = ~uint64_t{0};
  EXPECT_EQ(GeometricSweep(uint64_t{1} << 62, most, 2).size(), 2u);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
