#include <vector>

#include "common/cpu_facts.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

struct ListCase {
  const char* text;
  bool ok;
  std::vector<int> want;
};

TEST(ParseCpuListTest, ReadsNumbersAndRanges) {
  const ListCase cases[] = {
      {"", true, {}},
      {"0", true, {0}},
      {"0-3,7", true, {0, 1, 2, 3, 7}},
      {"7,0-1,1-2", true, {0, 1, 2, 7}},
      {"5-5", true, {5}},
      {"3-1", false, {}},
      {"-1", false, {}},
      {"1-", false, {}},
      {"1,,2", false, {}},
      {"1,", false, {}},
      {"a", false, {}},
      {"0-99999999", false, {}},
      {"1-2-3", false, {}},
  };
  for (const ListCase& one : cases) {
    const absl::StatusOr<std::vector<int>> cpus = ParseCpuList(one.text);
    ASSERT_EQ(cpus.ok(), one.ok) << one.text;
    if (one.ok) {
      EXPECT_EQ(*cpus, one.want) << one.text;
    } else {
      EXPECT_EQ(cpus.status().code(), absl::StatusCode::kInvalidArgument) << one.text;
    }
  }
}

TEST(FormatCpuListTest, WritesRangesAsTheKernelDoes) {
  for (const char* text : {"", "0", "0-3,7", "0,2,4-5", "0-127"}) EXPECT_EQ(FormatCpuList(*ParseCpuList(text)), text);
}

TEST(CommonCpusTest, AreThoseOfBoth) {
  EXPECT_EQ(CommonCpus({0, 1, 2, 5}, {1, 2, 3}), (std::vector<int>{1, 2}));
  EXPECT_EQ(CommonCpus({0}, {}), std::vector<int>());
}

}  // namespace
}  // namespace tcpx
