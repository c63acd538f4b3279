#include "bench/net_bench/plan.h"

#include <vector>

#include "bench/net_bench/cpus.h"
#include "bench/net_bench/report.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

Cell CellWith(uint64_t bytes, Implementation implementation, Phase phase, std::vector<double> values) {
  Cell cell;
  cell.bytes = bytes;
  cell.implementation = implementation;
  cell.In(phase).p99 = values;
  cell.In(phase).nanoseconds_per_message = values;
  cell.In(phase).value = std::move(values);
  return cell;
}

TEST(Phase, IsReadFromTheBounce) {
  EXPECT_EQ(ClassifyBounce(28), Phase::kNear);
  EXPECT_EQ(ClassifyBounce(74.9), Phase::kNear);
  EXPECT_EQ(ClassifyBounce(75), Phase::kBetween);
  EXPECT_EQ(ClassifyBounce(120), Phase::kBetween);
  EXPECT_EQ(ClassifyBounce(121), Phase::kFar);
  EXPECT_EQ(Combine(Phase::kNear, Phase::kNear), Phase::kNear);
  EXPECT_EQ(Combine(Phase::kNear, Phase::kFar), Phase::kMixed);
}

TEST(FloorFor, TakesSeveralSocketsForLargeMessagesOnly) {
  EXPECT_EQ(FloorFor(Mode::kBandwidth, 256 << 10, 1).size(), 1u);
  EXPECT_EQ(FloorFor(Mode::kBandwidth, 512 << 10, 1).size(), 3u);
  EXPECT_EQ(FloorFor(Mode::kBandwidth, 512 << 10, 4).size(), 1u);
  EXPECT_EQ(FloorFor(Mode::kLatency, 8, 1).size(), 2u);
  EXPECT_TRUE(FloorFor(Mode::kLatency, 0, 1).empty());
}

TEST(RowsFor, ComparesWithinOnePhaseWithTheBestFloor) {
  ModeReport report;
  report.mode = Mode::kBandwidth;
  report.cells.push_back(CellWith(1 << 20, Implementation::kPlugin, Phase::kNear, {6, 6, 6, 6, 6}));
  report.cells.push_back(CellWith(1 << 20, Implementation::kRawOne, Phase::kNear, {4, 4, 4, 4, 4}));
  report.cells.push_back(CellWith(1 << 20, Implementation::kRawTwo, Phase::kNear, {8, 8, 8, 8, 8}));
  report.cells.push_back(CellWith(1 << 20, Implementation::kRawFour, Phase::kFar, {100, 100, 100, 100, 100}));
  const std::vector<Row> rows = RowsFor(report, Phase::kNear);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].floor->implementation, Implementation::kRawTwo);
  EXPECT_DOUBLE_EQ(rows[0].ratio, 0.75);
  EXPECT_TRUE(rows[0].enough);
}

TEST(RowsFor, LatencyFloorIsTheSocketUsedBothWays) {
  ModeReport report;
  report.cells.push_back(CellWith(8, Implementation::kPlugin, Phase::kNear, {5, 5, 5, 5}));
  report.cells.push_back(CellWith(8, Implementation::kRawEachWay, Phase::kNear, {2, 2, 2, 2, 2}));
  report.cells.push_back(CellWith(8, Implementation::kRawOne, Phase::kNear, {4, 4, 4, 4, 4}));
  const std::vector<Row> rows = RowsFor(report, Phase::kNear);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].floor->implementation, Implementation::kRawOne);
  EXPECT_DOUBLE_EQ(rows[0].ratio, 1.25);
  EXPECT_FALSE(rows[0].enough) << "four samples are too few for a verdict";
}

TEST(MainPhase, PrefersTheChosenOne) {
  std::vector<Cell> cells = {CellWith(8, Implementation::kPlugin, Phase::kFar, {1})};
  EXPECT_EQ(MainPhase(cells, PhaseChoice::kNear), Phase::kFar) << "better than nothing";
  cells.push_back(CellWith(64, Implementation::kPlugin, Phase::kNear, {1}));
  EXPECT_EQ(MainPhase(cells, PhaseChoice::kNear), Phase::kNear);
  EXPECT_EQ(MainPhase(cells, PhaseChoice::kFar), Phase::kFar);
  EXPECT_EQ(MainPhase({}, PhaseChoice::kNear), Phase::kUnchecked);
}

TEST(MessagesFor, KeepsASampleShort) {
  Options options;
  Cell cell;
  cell.bytes = 8;
  cell.nanoseconds_per_message = 1000;
  EXPECT_EQ(MessagesFor(options, cell), 25000u);  // 25 ms
  cell.disturbed = 2;
  EXPECT_EQ(MessagesFor(options, cell), 6250u);
  cell.disturbed = 0;
  cell.connections = 100;
  EXPECT_EQ(MessagesFor(options, cell), 250u);
  cell.bytes = 1 << 30;
  cell.nanoseconds_per_message = 1e9;
  cell.connections = 1;
  EXPECT_EQ(MessagesFor(options, cell), 2u);
  options.iterations = 77;
  EXPECT_EQ(MessagesFor(options, cell), 77u);
}

TEST(ChoosePair, AvoidsTheOtherThreadOfTheSameCore) {
  const auto siblings = [](int cpu) { return cpu < 2 ? std::vector<int>{0, 1} : std::vector<int>{2, 3}; };
  EXPECT_EQ(ChoosePair({0, 1, 2, 3}, siblings), (std::pair<int, int>{0, 2}));
  EXPECT_EQ(ChoosePair({0, 1}, siblings), (std::pair<int, int>{0, 1}));
  EXPECT_EQ(ChoosePair({5}, siblings), (std::pair<int, int>{-1, -1}));
}

TEST(Report, MarksRatiosOfTooFewSamples) {
  RunReport report;
  report.modes.emplace_back();
  report.modes[0].cells.push_back(CellWith(8, Implementation::kPlugin, Phase::kNear, {5, 5}));
  report.modes[0].cells.push_back(CellWith(8, Implementation::kRawOne, Phase::kNear, {4, 4}));
  EXPECT_NE(ModeTable(report, report.modes[0]).find("1.25?"), std::string::npos);
  report.modes[0].cells[0].In(Phase::kNear).value.assign(5, 5);
  report.modes[0].cells[1].In(Phase::kNear).value.assign(5, 4);
  const std::string table = ModeTable(report, report.modes[0]);
  EXPECT_NE(table.find("1.25 "), std::string::npos);
  EXPECT_EQ(table.find('?'), std::string::npos);
}

TEST(Report, TheSecondPluginHasARatioOfItsOwn) {
  RunReport report;
  report.modes.emplace_back();
  report.modes[0].cells.push_back(CellWith(8, Implementation::kPlugin, Phase::kNear, {6, 6, 6, 6, 6}));
  report.modes[0].cells.push_back(CellWith(8, Implementation::kRawOne, Phase::kNear, {4, 4, 4, 4, 4}));
  report.modes[0].cells.push_back(CellWith(8, Implementation::kVs, Phase::kNear, {3, 3, 3, 3, 3}));
  const std::vector<Row> rows = RowsFor(report.modes[0], Phase::kNear);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].ratio, 1.5);
  EXPECT_EQ(rows[0].vs_ratio, 2);
  EXPECT_TRUE(rows[0].vs_enough);
  const std::string json = JsonReport(report);
  EXPECT_NE(json.find("\"floor\": \"raw-1\", \"ratio\": 1.5"), std::string::npos) << json;
  EXPECT_NE(json.find("\"floor\": \"vs\", \"ratio\": 2"), std::string::npos) << json;
  EXPECT_NE(json.find("{\"mode\": \"latency\", \"phase\": \"near\""), std::string::npos) << json;
  EXPECT_NE(ModeTable(report, report.modes[0]).find("vs: the second plugin, us"), std::string::npos);
}

TEST(Report, EscapesJson) {
  RunReport report;
  report.configuration.emplace_back("plugin", "a\"b\\c\nd");
  EXPECT_NE(JsonReport(report).find(R"(a\"b\\c\u000ad)"), std::string::npos);
}

TEST(Report, CsvHasOneLinePerCellAndPhase) {
  RunReport report;
  report.modes.emplace_back();
  report.modes[0].cells.push_back(CellWith(8, Implementation::kPlugin, Phase::kNear, {5}));
  report.modes[0].cells[0].In(Phase::kFar).value = {9};
  const std::string csv = CsvReport(report);
  EXPECT_NE(csv.find("latency,8,1,8,plugin,near,1,us,5,5,5,5,5\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("latency,8,1,8,plugin,far,1,us,9,"), std::string::npos) << csv;
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
