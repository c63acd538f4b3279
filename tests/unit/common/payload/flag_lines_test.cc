#include "common/payload/flag_lines.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tcpx {
namespace {

class FlagLinesTest : public ::testing::TestWithParam<LineKind> {
 protected:
  static constexpr size_t kBytes = 1024;

  Seen Poll(uint64_t flag) {
    line_ = 0;
    return PollLines(GetParam(), flag, words_.data(), kBytes, &line_);
  }
  char* bytes() { return reinterpret_cast<char*>(words_.data()); }

  std::vector<uint64_t> words_ = std::vector<uint64_t>(kBytes / 8);
  size_t line_ = 0;
};

TEST_P(FlagLinesTest, WhatIsFilledIsSeen) {
  EXPECT_EQ(Seen::kNotYet, Poll(1));
  FillLines(GetParam(), 1, words_.data(), kBytes);
  EXPECT_EQ(Seen::kAll, Poll(1));
  EXPECT_EQ(kBytes / LineBytes(GetParam()), line_);
  EXPECT_EQ(Seen::kNotYet, Poll(2));
  EXPECT_EQ(0u, line_);
}

// As bytes arrive in order: each line is seen when its last byte is there, and none is ever wrong.
TEST_P(FlagLinesTest, InAscendingOrderNothingIsWrong) {
  // Flags that differ in every byte.
  constexpr uint64_t kOld = 0x0707070707070707, kNew = 0x0808080808080808;
  std::vector<uint64_t> next(kBytes / 8);
  FillLines(GetParam(), kOld, words_.data(), kBytes);
  FillLines(GetParam(), kNew, next.data(), kBytes);
  for (size_t at = 0; at < kBytes; ++at) {
    ASSERT_EQ(Seen::kNotYet, Poll(kNew)) << at;
    EXPECT_LE(line_ * LineBytes(GetParam()), at);
    bytes()[at] = reinterpret_cast<const char*>(next.data())[at];
  }
  EXPECT_EQ(Seen::kAll, Poll(kNew));
}

TEST_P(FlagLinesTest, AFlagBeforeItsDataIsWrong) {
  std::vector<uint64_t> next(kBytes / 8);
  FillLines(GetParam(), 7, words_.data(), kBytes);
  FillLines(GetParam(), 8, next.data(), kBytes);
  // The second line, flag only.
  const size_t line = LineBytes(GetParam());
  std::memcpy(words_.data(), next.data(), line);
  std::memcpy(bytes() + 2 * line - 4, reinterpret_cast<const char*>(next.data()) + 2 * line - 4, 4);
  std::memcpy(bytes() + 2 * line - 8 + (line == 8 ? 4 : 0),
              reinterpret_cast<const char*>(next.data()) + 2 * line - 8 + (line == 8 ? 4 : 0), 4);
  EXPECT_EQ(Seen::kWrong, Poll(8));
  EXPECT_EQ(1u, line_);
}

INSTANTIATE_TEST_SUITE_P(BothKinds, FlagLinesTest, ::testing::Values(LineKind::kLl, LineKind::kLl128),
                         [](const auto& param) { return LineKindName(param.param); });

}  // namespace
}  // namespace tcpx
