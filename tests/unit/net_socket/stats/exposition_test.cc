#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "net_socket/stats/snapshot.h"
#include "tests/support/exposition_parser.h"
#include "tests/support/json.h"
#include "tests/unit/net_socket/stats/sample_snapshot.h"

namespace tcpx {
namespace {

Exposition Parsed(const Snapshot& snapshot, bool lanes = false) {
  Exposition exposition;
  std::string error;
  EXPECT_TRUE(ParseExposition(PrometheusText(snapshot, lanes), &exposition, &error)) << error;
  return exposition;
}

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> FamilyNames() {
  std::set<std::string> names;
  for (const MetricFamily& family : MetricFamilies()) names.insert(family.name);
  return names;
}

// Every word of `text` that looks like one of our metrics.
std::set<std::string> MetricWords(const std::string& text) {
  std::set<std::string> words;
  for (size_t at = text.find("tcpx_"); at != std::string::npos; at = text.find("tcpx_", at + 1)) {
    size_t end = at;
    while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) ++end;
    words.insert(text.substr(at, end - at));
  }
  return words;
}

TEST(ExpositionParserTest, TellsWhatIsWrong) {
  const char* const kWrong[] = {
      "",
      "tcpx_a 1\n",
      "# HELP tcpx_a A.\n# TYPE tcpx_a gauge\ntcpx_a 1",
      "# HELP tcpx_a A.\n# TYPE tcpx_a counter\ntcpx_a 1\n",
      "# HELP tcpx_a A.\n# TYPE tcpx_a gauge\ntcpx_a 1\ntcpx_a 2\n",
      "# HELP tcpx_a A.\n# TYPE tcpx_a gauge\ntcpx_a{b=\"x} 1\n",
      "# HELP tcpx_a A.\n# TYPE tcpx_a gauge\ntcpx_a{b=\"\\x\"} 1\n",
      "# HELP tcpx_a A.\n# TYPE tcpx_a gauge\ntcpx_a nan\n",
      "# HELP tcpx_a_total A.\n# TYPE tcpx_a_total counter\ntcpx_a_total -1\n",
      "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
      "# HELP h H.\n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
  };
  for (const char* text : kWrong) {
    Exposition exposition;
    std::string error;
    EXPECT_FALSE(ParseExposition(text, &exposition, &error)) << text;
    EXPECT_FALSE(error.empty());
  }
}

TEST(ExpositionTest, WritesEveryFamilyAndNoOther) {
  const Exposition all = Parsed(SampleSnapshot(), true);
  std::set<std::string> written;
  for (const auto& [name, type] : all.types) written.insert(name);
  EXPECT_EQ(FamilyNames(), written);
}

TEST(ExpositionTest, TellsTheNumbersInBaseUnits) {
  const Exposition all = Parsed(SampleSnapshot());
  EXPECT_EQ(20 << 20, all.Sum("tcpx_sent_bytes_total", {{"class", "bulk"}, {"peer", "10.0.0.2"}, {"device", "eth0"}}));
  EXPECT_EQ(10, all.Sum("tcpx_received_messages_total", {{"class", "express"}}));
  EXPECT_EQ(6, all.Sum("tcpx_lanes", {{"congestion", "bbr"}, {"dscp", "46"}}));
  EXPECT_EQ(9, all.Sum("tcpx_tcp_busy_seconds_total"));
  EXPECT_DOUBLE_EQ(102e-6, all.Sum("tcpx_rtt_seconds"));
  EXPECT_EQ(2 * (1 + 2 + 3 + 4 + 5 + 6 + 7 + 8), all.Sum("tcpx_blocked_seconds_total"));
  EXPECT_EQ(2 * (7 + 8), all.Sum("tcpx_blocked_seconds_total", {{"cause", "here"}}));
  EXPECT_EQ(10, all.Sum("tcpx_transfer_seconds_count", {{"class", "express"}, {"direction", "send"}}));
  EXPECT_EQ(
      9, all.Sum("tcpx_transfer_seconds_bucket", {{"class", "express"}, {"direction", "send"}, {"le", "1.6384e-05"}}));
  EXPECT_EQ(0.5, all.Sum("tcpx_thread_no_cpu_seconds_total", {{"thread", "tcpx-io-0"}}));
  EXPECT_EQ(all.samples.size(), static_cast<size_t>(std::count_if(all.samples.begin(), all.samples.end(), [](auto& s) {
              return s.labels.at("node") == "node1" && s.labels.at("pid") == "4711-4026532000" &&
                     s.labels.at("slurm_job_id") == "unknown";
            })));
}

TEST(ExpositionTest, TellsHowLanesCameAndWent) {
  Snapshot snapshot = SampleSnapshot();
  const Exposition all = Parsed(snapshot);
  EXPECT_EQ(2 * 6, all.Sum("tcpx_lanes_added_total"));
  EXPECT_EQ(2 * 7, all.Sum("tcpx_lanes_dropped_total"));
  EXPECT_EQ(5, all.Sum("tcpx_lanes_redialled_total")) << "only senders dial";
  // One that is closed counts with what it moved, and is none of those that are open.
  ConnectionNumbers closed = SampleConnection("10.0.0.3", true, 2);
  closed.lanes[1].open = false;
  snapshot.connections = {closed};
  snapshot.totals.Add(closed, true);
  const Exposition with = Parsed(snapshot, true);
  EXPECT_EQ(1, with.Sum("tcpx_lanes", {{"peer", "10.0.0.3"}}));
  EXPECT_EQ(14 << 20, with.Sum("tcpx_stream_bytes_total", {{"peer", "10.0.0.3"}}));
  EXPECT_EQ(1, with.Count("tcpx_lane_bytes_total"));
}

TEST(ExpositionTest, CommunicatorsHaveTheirIdAndGpuAndAreBounded) {
  Snapshot snapshot = SampleSnapshot();
  EXPECT_EQ(1, Parsed(snapshot).Count("tcpx_communicator_info", {{"id", "0x1234"}, {"gpu", "unknown"}}));
  ConnectionNumbers numbers = SampleConnection("10.0.0.2", true, 1);
  numbers.gpu = 3;
  snapshot.totals.Add(numbers, true);
  numbers.communicator = 0;  // NCCL does not tell it before 2.28.
  snapshot.totals.Add(numbers, true);
  const Exposition all = Parsed(snapshot);
  EXPECT_EQ(1, all.Count("tcpx_communicator_info"));
  EXPECT_EQ(1, all.Count("tcpx_communicator_info", {{"id", "0x1234"}, {"gpu", "GPU3"}}));
  for (uint64_t i = 0; i < 1000; ++i) {
    numbers.communicator = 0x10000 + i;
    snapshot.totals.Add(numbers, true);
  }
  EXPECT_EQ(static_cast<int>(Totals::kCommunicatorsMax), Parsed(snapshot).Count("tcpx_communicator_info"));
}

TEST(ExpositionTest, QuotesWhatOthersNamed) {
  const std::string nasty = "a\"b\\c\nd";
  const Exposition all = Parsed(SampleSnapshot(nasty), true);
  EXPECT_GT(all.Count("tcpx_build_info", {{"node", nasty}}), 0);
}

TEST(ExpositionTest, WritesNoByteThatIsNotText) {
  const Exposition all = Parsed(SampleSnapshot("a\xff\x01\tb"), true);
  EXPECT_GT(all.Count("tcpx_build_info", {{"node", "a???b"}}), 0);
}

// Containers count their processes each from 1, and pods of a host's network have its name.
TEST(ExpositionTest, ContainersOfAHostHaveSeriesOfTheirOwn) {
  Snapshot other = SampleSnapshot();
  other.process.mark = "4711-4026532999";
  const Exposition all = Parsed(other);
  EXPECT_EQ(0, all.Count("tcpx_build_info", {{"pid", "4711-4026532000"}}));
  EXPECT_EQ(1, all.Count("tcpx_build_info", {{"pid", "4711-4026532999"}}));
}

TEST(ExpositionTest, SeriesDoNotGrowWithConnections) {
  Snapshot snapshot = SampleSnapshot();
  const size_t before = Parsed(snapshot).samples.size();
  for (int i = 0; i < 1000; ++i) snapshot.totals.Add(SampleConnection("10.0.0.2", i % 2 == 0), true);
  EXPECT_EQ(before, Parsed(snapshot).samples.size());
}

TEST(ExpositionTest, LanesAreBounded) {
  Snapshot snapshot = SampleSnapshot();
  snapshot.connections.clear();
  for (int i = 0; i < 2 * kLaneSeriesMax / 64; ++i) {
    snapshot.connections.push_back(SampleConnection("10.0.0.2", true, 64));
    snapshot.connections.back().connection = absl::StrCat("connection", i);
  }
  const Exposition all = Parsed(snapshot, true);
  EXPECT_EQ(kLaneSeriesMax, all.Count("tcpx_lane_bytes_total"));
  EXPECT_EQ(kLaneSeriesMax, all.Sum("tcpx_lanes_left_out"));
}

TEST(ExpositionTest, EveryMetricIsDocumented) {
  const std::set<std::string> documented = MetricWords(FileText("docs/observability.md"));
  for (const std::string& name : FamilyNames()) EXPECT_EQ(1u, documented.count(name)) << name;
}

// Both directions: what a panel asks for is written, and its text is JSON.
TEST(DashboardTest, AsksForMetricsThatThePluginWrites) {
  Json dashboard;
  std::string error;
  ASSERT_TRUE(ParseJson(FileText("deploy/grafana/tcpx.json"), &dashboard, &error)) << error;
  const std::set<std::string> names = FamilyNames();
  int expressions = 0;
  for (const Json& panel : dashboard["panels"].list) {
    EXPECT_FALSE(panel["title"].text.empty());
    for (const Json& target : panel["targets"].list) {
      ++expressions;
      const std::set<std::string> words = MetricWords(target["expr"].text);
      EXPECT_FALSE(words.empty()) << target["expr"].text;
      for (std::string word : words) {
        for (const char* suffix : {"_bucket", "_sum", "_count"}) {
          const size_t end = word.rfind(suffix);
          if (end != std::string::npos && end + std::string(suffix).size() == word.size()) word.resize(end);
        }
        EXPECT_EQ(1u, names.count(word)) << word << " in " << target["expr"].text;
      }
    }
  }
  EXPECT_GE(expressions, 10);
}

}  // namespace
}  // namespace tcpx
