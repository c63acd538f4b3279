#include "bench/nccl_bench/table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

bool Says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

Row AllReduceRow(double time_us) {
  Row row;
  row.ranks = 4;
  row.bytes = 1000000;
  row.count = 250000;
  row.out_of_place = {true, time_us, true, 0};
  row.in_place = {true, time_us * 2, true, 3};
  return row;
}

TEST(Table, BandwidthsAreThoseOfNcclTests) {
  const Row row = AllReduceRow(100);
  EXPECT_DOUBLE_EQ(AlgorithmBandwidth(row.bytes, row.out_of_place), 10);  // 10^6 B in 100 us
  EXPECT_DOUBLE_EQ(BusBandwidth(row, row.out_of_place), 15);
  EXPECT_EQ(AlgorithmBandwidth(1, Timing()), 0);
}

TEST(Table, LinesHoldWhatWasMeasured) {
  const std::string line = TableLine(AllReduceRow(100));
  for (const char* words : {" 1000000 ", " 250000 ", " float ", " sum ", " -1 ", " 100.00 ", " 10.000 ", " 15.000 ",
                            " 200.00 ", " 7.500 "}) {
    EXPECT_TRUE(Says(line, words)) << words << " in " << line;
  }
  EXPECT_EQ(line.substr(line.size() - 3), " 3\n");
}

TEST(Table, HeaderAndLinesAreEquallyWide) {
  const std::string header = TableHeader();
  const std::string line = TableLine(AllReduceRow(100));
  Row no_place = AllReduceRow(100);
  no_place.collective = Collective::kAllToAll;
  no_place.in_place = Timing();
  EXPECT_EQ(TableLine(no_place).size(), line.size());
  EXPECT_EQ(header.size(), 3 * line.size()) << header << line;
}

TEST(Table, WhatWasNotCheckedSaysSo) {
  Row row = AllReduceRow(100);
  row.out_of_place.checked = false;
  EXPECT_TRUE(Says(TableLine(row), "N/A"));
}

TEST(Row, SurvivesItsLine) {
  Row row = AllReduceRow(12.5);
  row.collective = Collective::kReduce;
  row.type = DataType::kBfloat16;
  row.op = RedOp::kMax;
  row.root = 3;
  row.in_place.ran = false;
  absl::StatusOr<Row> parsed = ParseRow(FormatRow(row));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(FormatRow(*parsed), FormatRow(row));
  EXPECT_EQ(TableLine(*parsed), TableLine(row));
}

TEST(ParseRow, RefusesOtherLines) {
  const std::string good = FormatRow(AllReduceRow(1));
  for (const std::string& line : {std::string(), std::string("# x"), good + " 1", good.substr(0, good.rfind(' ')),
                                  "no" + good, good.substr(0, good.size() - 1) + "x"}) {
    EXPECT_FALSE(ParseRow(line).ok()) << line;
  }
}

TEST(Comparison, ComparesEachWithTheLast) {
  Row alone = AllReduceRow(10);
  alone.bytes = 8;
  const std::string table = ComparisonTable({{"tcpx", {AllReduceRow(50), alone}}, {"Socket", {AllReduceRow(100)}}});
  EXPECT_TRUE(Says(table, "30.000   2.00")) << table;
  EXPECT_TRUE(Says(table, "15.000   1.00")) << table;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 4) << table;
  const std::string last = table.substr(table.rfind('\n', table.size() - 2));
  EXPECT_TRUE(Says(last, " - ")) << "no ratio without the other\n" << table;
  EXPECT_EQ(ComparisonTable({{"tcpx", {alone}}}), "");
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
