// The built library's statistics: table, file and socket, of real traffic.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/fd.h"
#include "tests/plugin/stats/stats_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/exposition_parser.h"
#include "tests/support/json.h"
#include "tests/support/plugin_log.h"
#include "tests/support/small_disk.h"
#include "tests/support/test_plugin.h"

namespace tcpx {
namespace {

// The only file in `dir`; empty where there is none.
std::string OnlyFile(const std::string& dir) {
  std::string text;
  DIR* const folder = opendir(dir.c_str());
  while (const dirent* entry = readdir(folder)) {
    if (!absl::EndsWith(entry->d_name, ".prom")) continue;
    std::ifstream file(absl::StrCat(dir, "/", entry->d_name));
    std::ostringstream content;
    content << file.rdbuf();
    text = content.str();
  }
  closedir(folder);
  return text;
}

using StatsTest = StatsFixture;

TEST_P(StatsTest, TheSocketTellsWhatMoved) {
  Open();
  Move(kSmall, 5);
  Move(kLarge, 3);
  Json all;
  const Deadline deadline;
  double messages = 0;
  while (messages < 16 && !deadline.Over()) {
    usleep(50000);
    std::string error;
    const std::string text = AskSocket(socket_);
    if (text.empty()) continue;  // The thread has just begun.
    all = Json();
    ASSERT_TRUE(ParseJson(text, &all, &error)) << error;
    messages = 0;
    for (const Json& connection : all["connections"].list) {
      messages += connection["express"]["messages"].number + connection["bulk"]["messages"].number;
    }
  }
  ASSERT_EQ(2u, all["connections"].size());
  for (const Json& connection : all["connections"].list) {
    EXPECT_EQ(5, connection["express"]["messages"].number);
    EXPECT_EQ(5.0 * kSmall, connection["express"]["bytes"].number);
    EXPECT_EQ(3, connection["bulk"]["messages"].number);
    EXPECT_EQ(3.0 * kLarge, connection["bulk"]["bytes"].number);
    EXPECT_EQ("127.0.0.1", connection["peer"].text);
    EXPECT_EQ("lo", connection["interfaces"].text);
    ASSERT_EQ(3u, connection["lanes"].size());
    double bytes = 0;
    for (const Json& lane : connection["lanes"].list) bytes += lane["bytes"].number;
    EXPECT_GE(bytes, 5.0 * kSmall + 3.0 * kLarge);
  }
  EXPECT_EQ(all["connections"][0]["connection"].text, all["connections"][1]["connection"].text);
  ASSERT_TRUE(plugin_->Finish().ok());
  EXPECT_EQ("", AskSocket(socket_));
}

// The numbers name the threads that move bytes, and the one that calls us, though another has called before.
TEST_P(StatsTest, TheCallersThreadIsKnown) {
  Open();
  std::thread([this] { Move(kSmall, 5); }).join();
  Move(kSmall, 5);
  bool known = false;
  for (const Deadline deadline; !known && !deadline.Over(); usleep(50000)) {
    Json all;
    std::string error;
    const std::string text = AskSocket(socket_);
    if (text.empty()) continue;  // The thread has just begun.
    ASSERT_TRUE(ParseJson(text, &all, &error)) << error;
    for (const Json& thread : all["threads"].list) {
      known |= thread["name"].text == "nccl" && thread["id"].number == getpid();
    }
  }
  EXPECT_TRUE(known);
  ASSERT_TRUE(plugin_->Finish().ok());
}

// A receive that is reported to NCCL before its data is there counts once the data is.
TEST_P(StatsTest, EarlyReceivesCountWithTheirSizes) {
  Open();
  char in[2][1000];
  const std::string out(1000, 'x');
  void* receives[2];
  for (int i = 0; i < 2; ++i) {
    void* data = in[i];
    size_t bytes = sizeof(in[i]);
    int tag = 0;
    void* handle = nullptr;
    receives[i] = reinterpret_cast<void*>(static_cast<intptr_t>(NCCL_NET_OPTIONAL_RECV_COMPLETION));
    ASSERT_EQ(ncclSuccess, plugin_->net().Irecv(pair_.receive, 1, &data, &bytes, &tag, &handle, nullptr, &receives[i]));
  }
  int done = 0;
  ASSERT_EQ(ncclSuccess, plugin_->net().Test(receives[0], &done, nullptr));
  EXPECT_EQ(1, done);
  void* sends[2];
  for (void*& send : sends) send = *PostSend(&plugin_->net(), pair_.send, out.data(), out.size());
  for (void* request : {sends[0], sends[1], receives[1]}) {
    done = 0;
    for (const Deadline deadline; !done && deadline.Yield();) {
      ASSERT_EQ(ncclSuccess, plugin_->net().Test(request, &done, nullptr));
    }
  }
  Exposition all;
  for (const Deadline deadline; !deadline.Over() && all.Sum("tcpx_received_messages_total") < 2; usleep(50000)) {
    const std::string text = OnlyFile(dir_);
    std::string error;
    if (text.empty()) continue;
    all = Exposition();
    ASSERT_TRUE(ParseExposition(text, &all, &error)) << error;
  }
  const std::map<std::string, std::string> received = {{"direction", "receive"}};
  EXPECT_EQ(2, all.Sum("tcpx_message_bytes_count", received));
  EXPECT_EQ(2000, all.Sum("tcpx_message_bytes_sum", received));
}

TEST_P(StatsTest, TheFileTellsWhatMovedAndGoesAtTheEnd) {
  Open();
  Move(kSmall, 5);
  Move(kLarge, 3);
  Exposition all;
  // A look may come between the two ends' last messages.
  auto complete = [&all] {
    return all.Sum("tcpx_sent_messages_total") >= 8 && all.Sum("tcpx_received_messages_total") >= 8;
  };
  for (const Deadline deadline; !deadline.Over() && !complete(); usleep(50000)) {
    const std::string text = OnlyFile(dir_);
    std::string error;
    if (text.empty()) continue;
    all = Exposition();
    ASSERT_TRUE(ParseExposition(text, &all, &error)) << error;
  }
  EXPECT_EQ(5, all.Sum("tcpx_sent_messages_total", {{"class", "express"}, {"peer", "127.0.0.1"}, {"device", "lo"}}));
  EXPECT_EQ(3.0 * kLarge, all.Sum("tcpx_received_bytes_total", {{"class", "bulk"}}));
  EXPECT_EQ(2, all.Sum("tcpx_connections"));
  EXPECT_EQ(6, all.Sum("tcpx_lanes"));
  EXPECT_GT(all.Sum("tcpx_blocked_seconds_total"), 0);
  EXPECT_EQ(0, all.Count("tcpx_lane_bytes_total"));
  ASSERT_TRUE(plugin_->Finish().ok());
  EXPECT_EQ("", OnlyFile(dir_));
}

// Lanes are opened and closed at random: some never had a socket while a look comes.
TEST_P(StatsTest, LanesThatComeAndGoAreCounted) {
  settings_.environment["TCPX_HEAL"] = "1";
  settings_.environment["TCPX_TEST_SHUFFLE_LANES"] = "1";
  settings_.environment["TCPX_STATS_LANES"] = "1";
  Open();
  Exposition all;
  for (const Deadline deadline; !deadline.Over();) {
    Move(kLarge, 3);
    const std::string text = OnlyFile(dir_);
    std::string error;
    if (text.empty()) continue;
    all = Exposition();
    ASSERT_TRUE(ParseExposition(text, &all, &error)) << error;
    if (all.Sum("tcpx_lanes_added_total") > 0 && all.Sum("tcpx_lanes_dropped_total") > 0) break;
  }
  EXPECT_GT(all.Sum("tcpx_lanes_added_total"), 0);
  EXPECT_GT(all.Sum("tcpx_lanes_dropped_total"), 0);
  const std::map<std::string, std::string> sends = {{"direction", "send"}};
  EXPECT_EQ(all.Sum("tcpx_lanes", sends), all.Count("tcpx_lane_bytes_total", sends));
  EXPECT_GE(all.Sum("tcpx_lanes", sends), 1);
  Json document;
  std::string error;
  ASSERT_TRUE(ParseJson(AskSocket(socket_), &document, &error)) << error;
  for (const Json& connection : document["connections"].list) {
    EXPECT_GE(connection["lanes"].list.size(), 1u);
    for (const Json& lane : connection["lanes"].list) EXPECT_NE("", lane["local"].text);
  }
  ASSERT_TRUE(plugin_->Finish().ok());
}

// Who knocks thousands of times, says something, and never reads.
TEST_P(StatsTest, AHostileCrowdLeavesTrafficAlone) {
  Open();
  const int knocks = 5000 / TimeScale();
  const int heard = 300 / TimeScale();
  std::atomic<bool> over{false};
  std::atomic<int> tried{0};
  std::atomic<int> connected{0};
  std::thread crowd([&] {
    std::deque<OwnedFd> open;
    for (int i = 0; !over; ++i, ++tried) {
      OwnedFd fd = ConnectTo(socket_);
      if (!fd.valid()) continue;
      ++connected;
      if (i % 3 == 0) (void)!send(fd.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (i % 3 == 1) shutdown(fd.get(), SHUT_WR);
      open.push_back(std::move(fd));
      if (open.size() > 300) open.pop_front();
    }
  });
  for (const Deadline deadline; (tried < knocks || connected < heard) && !deadline.Over() && !HasFatalFailure();) {
    Move(kSmall, 20);
    Move(kLarge, 1);
  }
  over = true;
  crowd.join();
  EXPECT_GE(tried, knocks);
  EXPECT_GE(connected, heard);
  Json all;
  std::string error;
  std::string text;
  for (const Deadline deadline; text.empty() && !deadline.Over(); usleep(50000)) text = AskSocket(socket_);
  EXPECT_TRUE(ParseJson(text, &all, &error)) << error;
  EXPECT_EQ(2u, all["connections"].list.size());
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
  ASSERT_TRUE(plugin_->Finish().ok());
}

TEST_P(StatsTest, TheTableIsInTheLog) {
  settings_.environment = {{"TCPX_STATS", "1"}, {"NCCL_DEBUG", "INFO"}};
  Open();
  Move(kSmall, 2);
  ASSERT_TRUE(plugin_->Finish().ok());
  int rows = 0;
  for (const std::string& line : LogLines(NCCL_LOG_INFO)) rows += absl::StrContains(line, "stats: lo ") ? 1 : 0;
  EXPECT_EQ(2, rows) << LogText();
}

TEST_P(StatsTest, WhereNothingCanBeHadTrafficGoesOn) {
  settings_.environment = {{"TCPX_STATS_DIR", "/proc/none"}, {"TCPX_STATS_SOCKET", "/proc/none/socket"}};
  Open();
  Move(kSmall, 5);
  Move(kLarge, 1);
  const Deadline deadline;
  while (LogLines(NCCL_LOG_WARN).size() < 2 && deadline.Yield()) {
  }
  ASSERT_TRUE(plugin_->Finish().ok());
  const auto warnings = LogLines(NCCL_LOG_WARN);
  ASSERT_EQ(2u, warnings.size()) << LogText();
  EXPECT_TRUE(LogHas("TCPX_STATS_DIR: /proc/none/tcpx-"));
  EXPECT_TRUE(LogHas("TCPX_STATS_SOCKET: bind to /proc/none/socket"));
}

TEST_P(StatsTest, OnAFullDiskTrafficGoesOn) {
  settings_.environment = {{"TCPX_STATS_DIR", dir_}};
  const bool ran = OnSmallDisk(dir_, [this] {
    FillDisk(dir_);
    Open();
    const Deadline deadline;
    while (LogLines(NCCL_LOG_WARN).empty() && deadline.Yield()) Move(kSmall, 5);
    Move(kLarge, 3);
    EXPECT_EQ("", OnlyFile(dir_));
    ASSERT_TRUE(plugin_->Finish().ok());
    const auto warnings = LogLines(NCCL_LOG_WARN);
    ASSERT_EQ(1u, warnings.size()) << LogText();
    EXPECT_TRUE(LogHas("No space left")) << LogText();
  });
  if (!ran) GTEST_SKIP() << kNoSmallDisk;
}

INSTANTIATE_TEST_SUITE_P(Threads, StatsTest, testing::Values(0, 2),
                         [](const auto& threads) { return threads.param == 0 ? "caller" : "pool"; });

}  // namespace
}  // namespace tcpx
