// What is concluded from measurements between hosts.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tools/doctor/between.h"
#include "tools/doctor/greeting.h"
#include "tools/doctor/hosts.h"

namespace tcpx {
namespace doctor {
namespace {

TEST(Flows, OneThatFillsThePathNeedsNoSetting) {
  Report report;
  JudgeFlows({{1, 9000, 9100}, {4, 9400, 9300}, {16, 9300, 9200}}, 4, kAdviceMs, &report);
  EXPECT_EQ(report.Count(Grade::kNote), 0);
  EXPECT_TRUE(report.Says("one flow fills the path"));
}

TEST(Flows, ALimitForEachIsNamedWithTheLanesThatHelp) {
  Report report;
  JudgeFlows({{1, 1000, 1000}, {4, 4000, 4000}, {16, 15000, 15000}}, 4, kAdviceMs, &report);
  EXPECT_TRUE(report.Says("limited to about 1000 Mbit/s; 16 bring 15.0 times as much"));
  EXPECT_EQ(report.findings().back().fix, "export TCPX_LANES=17");
}

TEST(Flows, WhatThePluginTakesByItselfIsNotRecommended) {
  Report report;
  JudgeFlows({{1, 1000, 1000}, {4, 3900, 4000}, {16, 4000, 4000}}, 4, kAdviceMs, &report);
  EXPECT_TRUE(report.Says("a flow is limited"));
  EXPECT_EQ(report.findings().back().grade, Grade::kOk);
}

TEST(Flows, DirectionsThatDifferAreNamed) {
  Report report;
  JudgeFlows({{1, 9000, 900}, {4, 9000, 900}, {16, 9000, 900}}, 4, kAdviceMs, &report);
  EXPECT_TRUE(report.Says("the directions differ"));
}

// Anybody who reaches the listener may ask.
TEST(Facts, SayNothingOfTheSecret) {
  Patient patient;
  patient.options.secret_file = "/etc/tcpx/secret";
  patient.options.linger_ns *= 2;
  const PeerFacts facts = OwnFacts(patient);
  EXPECT_EQ(facts.parameters.count("TCPX_SECRET_FILE"), 0u);
  EXPECT_EQ(facts.parameters.count("TCPX_LINGER"), 1u);
}

TEST(Flows, NoneTellNothing) {
  Report report;
  JudgeFlows({}, 4, kAdviceMs, &report);
  EXPECT_TRUE(report.findings().empty());
}

TEST(Flows, AShortRunRecommendsNoNumberOfLanes) {
  Report report;
  JudgeFlows({{1, 1000, 1000}, {4, 4000, 4000}, {16, 15000, 15000}}, 4, kAdviceMs - 1, &report);
  EXPECT_TRUE(report.Says("a flow is limited"));
  EXPECT_TRUE(report.Says("too short to recommend TCPX_LANES: for that use --ms 10000"));
  EXPECT_TRUE(report.findings().back().fix.empty());
}

TEST(Flows, NoiseRecommendsNoNumberOfLanes) {
  Report report;
  JudgeFlows({{1, 1000, 1000, 600, 4000}, {4, 1400, 1400, 900, 5000}, {16, 3900, 3900, 3900, 6000}}, 4, kAdviceMs,
             &report);
  EXPECT_TRUE(report.Says("the rounds differ as much as the numbers of flows do"));
  EXPECT_EQ(report.Count(Grade::kNote), 0);
  Report clear;
  JudgeFlows({{1, 1000, 1000, 900, 1100}, {4, 4000, 4000, 3900, 4100}, {16, 16000, 16000, 15000, 17000}}, 4, kAdviceMs,
             &clear);
  EXPECT_EQ(clear.findings().back().fix, "export TCPX_LANES=17");
}

// A fix fits what is wrong, and a firewall is only one of the reasons.
TEST(Streams, AFailureHasTheFixThatFits) {
  const struct {
    const char* reason;
    const char* fix;
  } cases[] = {
      {"connect failed: the peer has another shared secret: give all ranks the same TCPX_SECRET_FILE",
       "TCPX_SECRET_FILE"},
      {"the peer has TCPX_ENCRYPT=1 and this process has not: set TCPX_ENCRYPT alike on all ranks",
       "set TCPX_ENCRYPT to"},
      {"connect failed: the peer has none of the ciphers that this process has: see TCPX_ENCRYPT_CIPHER",
       "set TCPX_ENCRYPT_CIPHER to"},
      {"proved the secret, but what came after that was changed on the path (TCPX_ENCRYPT)", "middlebox"},
      {"an encrypted record stalled", "NCCL_DEBUG=INFO"},
      {"connect failed: the peer speaks another wire version: install one build", "one build"},
      {"error the plugin is not found on the other host: run tcpx_doctor there", "tcpx_doctor on the other host"},
      {"connect failed: connect to 10.0.0.2:4 through eth0: no answer yet", "TCPX_PORT_RANGE"},
      {"connect failed: connect: Connection refused (111); nobody listens there", "TCPX_PORT_RANGE"},
      {"the stream stalled", "NCCL_DEBUG=INFO"},
  };
  for (const auto& one : cases) {
    EXPECT_TRUE(absl::StrContains(FixStream(Report(), one.reason), one.fix)) << one.reason;
  }
  Report black_hole;
  black_hole.Problem("mtu", "1400 bytes pass: larger ones are dropped silently", "ip link set");
  EXPECT_TRUE(absl::StrContains(FixStream(black_hole, "the stream stalled"), "the line about mtu"));
}

TEST(Parameters, ThatDifferAreNamedOnceAndEncryptionIsAProblem) {
  PeerFacts here;
  PeerFacts there;
  Report same;
  here.parameters["NCCL_SOCKET_IFNAME"] = "eth0";
  EXPECT_TRUE(CompareParameters(here, there, &same));
  EXPECT_EQ(same.Count(Grade::kOk), 1);
  here.parameters["TCPX_LANES"] = "4";
  there.parameters["TCPX_HEAL"] = "off";
  Report differ;
  EXPECT_TRUE(CompareParameters(here, there, &differ));
  EXPECT_EQ(differ.Count(Grade::kNote), 1);
  EXPECT_TRUE(differ.Says("TCPX_LANES is 4 here and auto there"));
  EXPECT_TRUE(differ.Says("TCPX_HEAL is on here and off there"));
  there.parameters["TCPX_ENCRYPT"] = "on";
  Report encrypts;
  EXPECT_FALSE(CompareParameters(here, there, &encrypts));
  EXPECT_TRUE(encrypts.Says("TCPX_ENCRYPT is off here and on there: they would refuse each other"));
  EXPECT_EQ(encrypts.ExitCode(), 1);
}

TEST(Subnets, SharedByTwoInterfacesAreAFinding) {
  PeerFacts facts;
  facts.host = "a";
  facts.links.push_back({0, "eth0", *SocketAddress::Parse("10.0.0.1"), 24, 1500, 10000, "eth1", false});
  Report note;
  CheckSharedSubnets(facts, &note);
  EXPECT_EQ(note.Count(Grade::kNote), 1);
  EXPECT_TRUE(note.Says("a: eth0 10.0.0.1 and eth1 are in one subnet"));
  facts.links[0].drops = true;
  Report problem;
  CheckSharedSubnets(facts, &problem);
  EXPECT_TRUE(problem.Says("rp_filter=1 drops them"));
  EXPECT_EQ(problem.ExitCode(), 1);
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

// Each pair is asked once; in a round no host is in two of them.
TEST(Hosts, AreAskedInRoundsOfDisjointPairs) {
  for (int hosts = 2; hosts <= 9; ++hosts) {
    for (const int at_once : {1, 2, hosts}) {
      std::set<std::pair<int, int>> asked;
      const auto rounds = PairRounds(hosts, at_once);
      for (const auto& round : rounds) {
        std::set<int> busy;
        EXPECT_LE(round.size(), static_cast<size_t>(at_once));
        for (const auto& [from, to] : round) {
          EXPECT_LT(from, to);
          EXPECT_TRUE(asked.insert({from, to}).second) << from << " and " << to;
          EXPECT_TRUE(busy.insert(from).second && busy.insert(to).second) << from << " and " << to;
        }
      }
      EXPECT_EQ(asked.size(), static_cast<size_t>(hosts * (hosts - 1) / 2));
    }
    EXPECT_EQ(PairRounds(hosts, hosts).size(), static_cast<size_t>(hosts + hosts % 2 - 1));
  }
  EXPECT_EQ(PairRounds(64, 64).size(), 63u);
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
  EXPECT_TRUE(report.Says("d is unusual in all of its 3 pairs"));
  EXPECT_FALSE(report.Says("a is unusual"));
  EXPECT_TRUE(report.Says("b and d: back 900 Mbit/s, where the median is"));
}

TEST(Matrix, NamesThePairThatIsOdd) {
  std::vector<Cell> cells = Alike(4);
  cells[1].rtt_us = 900;
  cells[1].mtu = 1500;
  Report report;
  JudgeMatrix(Names(4), cells, &report);
  EXPECT_FALSE(report.Says("is unusual"));
  EXPECT_TRUE(report.Says("a and c: a round trip of 900 us, where the median is 20; a path MTU of 1500"));
}

TEST(Matrix, BlamesNobodyWhereAllAreOdd) {
  Report report;
  JudgeMatrix(Names(3), {ParseSummary(0, 1, ""), ParseSummary(0, 2, ""), ParseSummary(1, 2, "")}, &report);
  EXPECT_FALSE(report.Says("is unusual"));
  EXPECT_EQ(report.Count(Grade::kProblem), 3);
}

TEST(Matrix, IsATable) {
  const std::string text = MatrixText(Names(2), Alike(2));
  EXPECT_TRUE(absl::StrContains(text, "9000"));
  EXPECT_TRUE(absl::StrContains(text, "9100"));
  EXPECT_TRUE(absl::StrContains(text, "path MTU"));
}

TEST(Matrix, IsAPictureWithOneCharacterForAPair) {
  std::vector<Cell> cells = Alike(4);
  for (Cell& cell : cells) {
    if (cell.to == 3) cell.in_mbps = 900;
  }
  cells[0].reached = false;
  const std::string text = MatrixText(Names(4), cells);
  EXPECT_TRUE(absl::StrContains(text, "\na                \\!..\n")) << text;
  EXPECT_TRUE(absl::StrContains(text, "\nd                ###\\\n")) << text;
  // Wider tables than a screen are left out.
  EXPECT_FALSE(absl::StrContains(MatrixText(Names(13), Alike(13)), "path MTU"));
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx
