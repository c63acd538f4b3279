// What is concluded from measurements between hosts.
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tools/doctor/between.h"
#include "tools/doctor/hosts.h"

namespace tcpx {
namespace doctor {
namespace {

TEST(Flows, OneThatFillsTheWayNeedsNoSetting) {
  Report report;
  JudgeFlows({{1, 9000, 9100}, {4, 9400, 9300}, {16, 9300, 9200}}, 4, &report);
  EXPECT_EQ(report.Count(Grade::kNote), 0);
  EXPECT_TRUE(report.Says("one flow fills the way"));
}

TEST(Flows, ALimitForEachIsNamedWithTheLanesThatHelp) {
  Report report;
  JudgeFlows({{1, 1000, 1000}, {4, 4000, 4000}, {16, 15000, 15000}}, 4, &report);
  EXPECT_TRUE(report.Says("limited to about 1000 Mbit/s; 16 bring 15.0 times as much"));
  EXPECT_EQ(report.findings().back().mend, "export TCPX_LANES=17");
}

TEST(Flows, WhatThePluginTakesByItselfIsNotRecommended) {
  Report report;
  JudgeFlows({{1, 1000, 1000}, {4, 3900, 4000}, {16, 4000, 4000}}, 4, &report);
  EXPECT_TRUE(report.Says("a flow is limited"));
  EXPECT_EQ(report.findings().back().grade, Grade::kOk);
}

TEST(Flows, DirectionsThatDifferAreNamed) {
  Report report;
  JudgeFlows({{1, 9000, 900}, {4, 9000, 900}, {16, 9000, 900}}, 4, &report);
  EXPECT_TRUE(report.Says("the directions differ"));
}

TEST(Flows, NoneTellNothing) {
  Report report;
  JudgeFlows({}, 4, &report);
  EXPECT_TRUE(report.findings().empty());
}

TEST(Clock, OnlyALargeDifferenceIsNoted) {
  Report report;
  JudgeClock(-500, &report);
  EXPECT_EQ(report.Count(Grade::kNote), 0);
  JudgeClock(2500000, &report);
  EXPECT_EQ(report.Count(Grade::kNote), 1);
  EXPECT_TRUE(report.Says("2500.000 ms ahead"));
}

TEST(Hosts, AreLinesOfNameAndAddress) {
  const auto hosts = ParseHosts("a  # first\n\nb 10.0.0.2\n");
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  ASSERT_EQ(hosts->size(), 2u);
  EXPECT_EQ((*hosts)[0].address, "a");
  EXPECT_EQ((*hosts)[1].name, "b");
  EXPECT_EQ((*hosts)[1].address, "10.0.0.2");
}

TEST(Hosts, ThatAShellWouldTakeForMoreAreRefused) {
  for (const char* text : {"", "a", "a\nb c d", "a\nb;reboot", "a\n$(reboot)", "a\n-oProxyCommand=x", "a\nb `x`"}) {
    EXPECT_FALSE(ParseHosts(text).ok()) << text;
  }
}

std::vector<HostLine> Names(int count) {
  std::vector<HostLine> hosts;
  for (int i = 0; i < count; ++i) hosts.push_back({std::string(1, static_cast<char>('a' + i)), "x"});
  return hosts;
}

// All pairs of hosts, as fast as each other.
std::vector<Cell> Alike(int count) {
  std::vector<Cell> cells;
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      cells.push_back(ParseSummary(i, j, "summary rtt_us=20 mtu=9000 out_mbps=9000 in_mbps=9100 problems=0 text=\n"));
    }
  }
  return cells;
}

TEST(Matrix, ReadsASummaryAmongOtherLines) {
  const Cell cell =
      ParseSummary(1, 2, "motd\nsummary rtt_us=20 mtu=1500 out_mbps=5 in_mbps=6 problems=2 text=a problem=x\n");
  EXPECT_TRUE(cell.reached);
  EXPECT_EQ(cell.mtu, 1500);
  EXPECT_EQ(cell.out_mbps, 5);
  EXPECT_EQ(cell.problems, 2);
  EXPECT_EQ(cell.text, "a problem=x");
  EXPECT_FALSE(ParseSummary(1, 2, "ssh: no route to host\n").reached);
}

TEST(Matrix, OfHostsAlikeHasNoOutlier) {
  Report report;
  JudgeMatrix(Names(4), Alike(4), &report);
  EXPECT_EQ(report.ExitCode(), 0);
  EXPECT_TRUE(report.Says("6 pairs alike"));
}

TEST(Matrix, NamesTheHostThatIsSlow) {
  std::vector<Cell> cells = Alike(4);
  for (Cell& cell : cells) {
    if (cell.to == 3) cell.in_mbps = 900;
  }
  Report report;
  JudgeMatrix(Names(4), cells, &report);
  EXPECT_TRUE(report.Says("d stands out in all of its 3 pairs"));
  EXPECT_FALSE(report.Says("a stands out"));
  EXPECT_TRUE(report.Says("b and d: back 900 Mbit/s, where the median is"));
}

TEST(Matrix, NamesThePairThatIsOdd) {
  std::vector<Cell> cells = Alike(4);
  cells[1].rtt_us = 900;
  cells[1].mtu = 1500;
  Report report;
  JudgeMatrix(Names(4), cells, &report);
  EXPECT_FALSE(report.Says("stands out"));
  EXPECT_TRUE(report.Says("a and c: a round trip of 900 us, where the median is 20; a path MTU of 1500"));
}

TEST(Matrix, BlamesNobodyWhereAllAreOdd) {
  Report report;
  JudgeMatrix(Names(3), {ParseSummary(0, 1, ""), ParseSummary(0, 2, ""), ParseSummary(1, 2, "")}, &report);
  EXPECT_FALSE(report.Says("stands out"));
  EXPECT_EQ(report.Count(Grade::kProblem), 3);
}

TEST(Matrix, IsATable) {
  const std::string text = MatrixText(Names(2), Alike(2));
  EXPECT_TRUE(absl::StrContains(text, "9000"));
  EXPECT_TRUE(absl::StrContains(text, "9100"));
  EXPECT_TRUE(absl::StrContains(text, "path MTU"));
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx
