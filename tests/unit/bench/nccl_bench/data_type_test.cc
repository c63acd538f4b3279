#include "bench/nccl_bench/data_type.h"

#include <cmath>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

struct Bits {
  double value;
  uint16_t half;
  uint16_t bfloat16;
};

// Worked out by hand from the two formats.
constexpr Bits kBits[] = {
    {0.0, 0x0000, 0x0000},
    {-0.0, 0x8000, 0x8000},
    {1.0, 0x3c00, 0x3f80},
    {-2.0, 0xc000, 0xc000},
    {0.5, 0x3800, 0x3f00},
    {1.0 + 1.0 / 1024, 0x3c01, 0x3f80},  // the next half; for bfloat16 nearer to 1
    {1.0 + 1.0 / 128, 0x3c08, 0x3f81},   // the next bfloat16
    {1.0 + 1.0 / 256, 0x3c04, 0x3f80},   // a tie of bfloat16: to the even one, below
    {1.0 + 3.0 / 256, 0x3c0c, 0x3f82},   // a tie of bfloat16: to the even one, above
    {1.0 + 1.0 / 2048, 0x3c00, 0x3f80},  // a tie of half: below
    {1.0 + 3.0 / 2048, 0x3c02, 0x3f80},  // a tie of half: above
    {65504.0, 0x7bff, 0x4780},           // the largest half
    {65520.0, 0x7c00, 0x4780},           // rounds to infinity by a carry
    {1e6, 0x7c00, 0x4974},               // above all halves
    {0x1p-14, 0x0400, 0x3880},           // the smallest normal half
    {0x1p-24, 0x0001, 0x3380},           // the smallest half
    {0x1p-26, 0x0000, 0x3280},           // below half of it
    {0x1p-133, 0x0000, 0x0001},          // the smallest bfloat16
};

TEST(DataType, EncodesWithTiesToEven) {
  for (const Bits& row : kBits) {
    EXPECT_EQ(HalfFromDouble(row.value), row.half) << row.value;
    EXPECT_EQ(Bfloat16FromDouble(row.value), row.bfloat16) << row.value;
  }
  EXPECT_TRUE(std::isnan(DoubleFromHalf(HalfFromDouble(NAN))));
  EXPECT_TRUE(std::isnan(DoubleFromBfloat16(Bfloat16FromDouble(NAN))));
}

TEST(DataType, EveryPatternSurvivesARoundTrip) {
  for (int bits = 0; bits < 1 << 16; ++bits) {
    const uint16_t pattern = static_cast<uint16_t>(bits);
    if (const double value = DoubleFromHalf(pattern); !std::isnan(value)) {
      ASSERT_EQ(HalfFromDouble(value), pattern) << value;
    }
    if (const double value = DoubleFromBfloat16(pattern); !std::isnan(value)) {
      ASSERT_EQ(Bfloat16FromDouble(value), pattern) << value;
    }
  }
}

TEST(DataType, ElementsLieSideBySide) {
  for (DataType type : kDataTypes) {
    char array[32] = {};
    for (size_t i = 0; i < 3; ++i) StoreElement(type, array + 1, i, static_cast<double>(i) - 1);
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(LoadElement(type, array + 1, i), static_cast<double>(i) - 1);
    EXPECT_EQ(array[0], 0);
    EXPECT_EQ(array[1 + 3 * DataTypeBytes(type)], 0) << DataTypeName(type);
  }
}

TEST(DataType, Int8KeepsTheLowestBits) {
  int8_t value = 0;
  StoreElement(DataType::kInt8, &value, 0, 200);
  EXPECT_EQ(value, -56);
}

TEST(DataType, RoundoffIsHalfTheStepAboveOne) {
  EXPECT_EQ(DoubleFromHalf(0x3c01) - 1, 2 * Roundoff(DataType::kHalf));
  EXPECT_EQ(DoubleFromBfloat16(0x3f81) - 1, 2 * Roundoff(DataType::kBfloat16));
  EXPECT_EQ(std::nextafter(1.0f, 2.0f) - 1, 2 * Roundoff(DataType::kFloat));
  EXPECT_EQ(Roundoff(DataType::kInt8), 0);
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
