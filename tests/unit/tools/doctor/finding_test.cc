// How findings are said.
#include "tools/doctor/finding.h"

#include "common/escape.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace doctor {
namespace {

Report Three() {
  Report report;
  report.Ok("nccl", "NCCL 2.28.9");
  report.Note("cpu", "few", "more");
  report.Problem("link", "tso is off", "ethtool -K eth0 tso on");
  return report;
}

TEST(Finding, IsALineWithItsCureBelow) {
  EXPECT_EQ(ReportText(Three(), false),
            "ok       nccl        NCCL 2.28.9\n"
            "note     cpu         few\n"
            "                      fix: more\n"
            "problem  link        tso is off\n"
            "                      fix: ethtool -K eth0 tso on\n"
            "1 ok, 1 to note, 1 problem\n");
}

TEST(Finding, QuietLeavesOutWhatIsOk) {
  Report report;
  report.Ok("nccl", "NCCL 2.28.9");
  EXPECT_EQ(ReportText(report, true), "1 ok, 0 to note, 0 problems\n");
}

TEST(Finding, OnlyAProblemIsAnExitCode) {
  Report report;
  EXPECT_EQ(report.ExitCode(), 0);
  report.Note("cpu", "few");
  EXPECT_EQ(report.ExitCode(), 0);
  report.Problem("cpu", "none", "some");
  EXPECT_EQ(report.ExitCode(), 1);
}

TEST(Finding, JsonHasTheSame) {
  EXPECT_EQ(ReportJson(Three(), "\"host\": \"a\""),
            "{\"host\": \"a\", \"problems\": 1, \"notes\": 1, \"findings\": [\n"
            "  {\"grade\": \"ok\", \"check\": \"nccl\", \"text\": \"NCCL 2.28.9\"},\n"
            "  {\"grade\": \"note\", \"check\": \"cpu\", \"text\": \"few\", \"fix\": \"more\"},\n"
            "  {\"grade\": \"problem\", \"check\": \"link\", \"text\": \"tso is off\", \"fix\": \"ethtool -K eth0 tso "
            "on\"}\n"
            "]}\n");
}

TEST(Finding, WhatOthersWroteMakesNoLines) {
  Report report;
  report.Problem("variable", "TCPX_A\nok       all  is well", "");
  EXPECT_EQ(report.findings()[0].text, "TCPX_A\\x0aok       all  is well");
  EXPECT_EQ(JsonText("a\"b\\c\xe9\x01"), "\"a\\\"b\\\\c\xef\xbf\xbd\\u0001\"");
}

TEST(Finding, IsSaidOnce) {
  Report report;
  for (int i = 0; i < 3; ++i) report.Problem("flow", "the stream stalled", "look");
  report.Problem("flow", "another", "look");
  EXPECT_EQ(report.Count(Grade::kProblem), 2);
  EXPECT_TRUE(report.HasProblem("flow"));
  EXPECT_FALSE(report.HasProblem("mtu"));
}

TEST(Finding, KnowsWhatItSaid) {
  EXPECT_TRUE(Three().Says("tso is"));
  EXPECT_FALSE(Three().Says("gro"));
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx
