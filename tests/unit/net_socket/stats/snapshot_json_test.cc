#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "net_socket/stats/snapshot.h"
#include "net_socket/stats/thread_times.h"
#include "tests/support/json.h"
#include "tests/unit/net_socket/stats/sample_snapshot.h"

namespace tcpx {
namespace {

Json Parsed(const std::string& text) {
  Json value;
  std::string error;
  EXPECT_TRUE(ParseJson(text, &value, &error)) << error;
  return value;
}

TEST(JsonReaderTest, TellsWhatIsWrong) {
  for (const char* text :
       {"", "{", "{\"a\":1,}", "[1,]", "01", "1.", "\"\x01\"", "{\"a\":1,\"a\":2}", "tru", "[] []"}) {
    Json value;
    std::string error;
    EXPECT_FALSE(ParseJson(text, &value, &error)) << text;
  }
}

TEST(SnapshotJsonTest, HasEveryConnectionAndLane) {
  const Json all = Parsed(SnapshotJson(SampleSnapshot()));
  EXPECT_EQ(kSnapshotFormat, all["tcpx_snapshot"].number);
  EXPECT_EQ(4711, all["process"]["pid"].number);
  EXPECT_EQ("4711-4026532000", all["process"]["mark"].text);
  EXPECT_EQ("tcpx-io-0", all["threads"][0]["name"].text);
  ASSERT_EQ(2u, all["connections"].size());
  const Json& sends = all["connections"][1];
  EXPECT_EQ("send", sends["direction"].text);
  EXPECT_EQ("0x1234", sends["communicator"].text);
  EXPECT_EQ(20, sends["bulk"]["messages"].number);
  EXPECT_EQ(16384, sends["express"]["p50_ns"].number);
  EXPECT_EQ(8e9, sends["blocked_ns"]["here.no_cpu"].number);
  ASSERT_EQ(3u, sends["lanes"].size());
  EXPECT_EQ("10.0.0.1:1001", sends["lanes"][1]["local"].text);
  EXPECT_EQ(101, sends["lanes"][1]["rtt_us"].number);
  EXPECT_EQ(128, sends["express"]["sizes"][0][0].number);
}

TEST(SnapshotJsonTest, QuotesWhatOthersNamed) {
  EXPECT_EQ("a\"b\\c", Parsed(SnapshotJson(SampleSnapshot("a\"b\\c")))["process"]["host"].text);
  Parsed(SnapshotJson(SampleSnapshot("\x01\x7f\xff\n")));
}

TEST(SnapshotJsonTest, OfNothing) { EXPECT_EQ(0u, Parsed(SnapshotJson(Snapshot()))["connections"].size()); }

TEST(ThreadWatchTest, KnowsThisThreadsTimes) {
  ThreadWatch watch;
  watch.Look({static_cast<int>(getpid())});
  if (watch.threads().empty()) GTEST_SKIP() << "this kernel has no /proc/PID/schedstat";
  EXPECT_EQ("nccl", watch.threads().begin()->second.name);
  const uint64_t before = watch.threads().begin()->second.cpu_ns;
  volatile uint64_t sum = 0;
  for (uint64_t i = 0; i < 20000000; ++i) sum = sum + i;
  watch.Look({static_cast<int>(getpid())});
  EXPECT_GT(watch.threads().begin()->second.cpu_ns, before);
  const ThreadUse use = watch.Use(getpid());
  EXPECT_GE(use.cpu_ns, watch.threads().begin()->second.cpu_ns - before);
  EXPECT_LE(use.no_cpu_ns, watch.threads().begin()->second.no_cpu_ns);
  EXPECT_EQ(kUseUnknown.cpu_ns, watch.Use(1).cpu_ns);
}

TEST(ThreadWatchTest, ForgetsThreadsThatHaveEnded) {
  ThreadWatch watch;
  watch.Look({2147483646});
  EXPECT_TRUE(watch.threads().empty());
  EXPECT_TRUE(watch.ended().empty());
}

// A folder like /proc/self/task.
class FakeTasks {
 public:
  FakeTasks() {
    std::string name = testing::TempDir() + "/tasks.XXXXXX";
    path_ = absl::StrCat(mkdtemp(name.data()), "/");
  }
  void Run(int id, const std::string& name, uint64_t cpu_ns, uint64_t no_cpu_ns) const {
    const std::string folder = absl::StrCat(path_, id);
    mkdir(folder.c_str(), 0755);
    std::ofstream(folder + "/comm") << name << "\n";
    std::ofstream(folder + "/schedstat") << cpu_ns << " " << no_cpu_ns << " 1\n";
  }
  void End(int id) const {
    (void)unlink(absl::StrCat(path_, id, "/comm").c_str());
    (void)unlink(absl::StrCat(path_, id, "/schedstat").c_str());
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(ThreadWatchTest, WhatEndedThreadsHadUsedStays) {
  FakeTasks tasks;
  ThreadWatch watch(tasks.path());
  tasks.Run(17, "tcpx-io-0", 1000, 10);
  tasks.Run(18, "python", 2000, 20);
  watch.Look({18}, 1);
  EXPECT_EQ(2u, watch.threads().size());
  tasks.End(17);
  tasks.Run(19, "tcpx-io-0", 5, 1);
  watch.Look({18}, 1);
  EXPECT_EQ(0u, watch.threads().count(17));
  EXPECT_EQ(1000u, watch.ended().at("tcpx-io-0").cpu_ns);
  EXPECT_EQ(10u, watch.ended().at("tcpx-io-0").no_cpu_ns);
  tasks.End(19);
  watch.Look({18}, 1);
  EXPECT_EQ(1005u, watch.ended().at("tcpx-io-0").cpu_ns);
}

TEST(ThreadWatchTest, AThreadThatCountsLessIsAnother) {
  FakeTasks tasks;
  ThreadWatch watch(tasks.path());
  tasks.Run(17, "tcpx-io-0", 1000, 10);
  watch.Look({}, 1);
  tasks.Run(17, "tcpx-house", 300, 7);
  watch.Look({}, 1);
  EXPECT_EQ(1000u, watch.ended().at("tcpx-io-0").cpu_ns);
  EXPECT_EQ("tcpx-house", watch.threads().at(17).name);
  EXPECT_EQ(300u, watch.threads().at(17).cpu_ns);
  EXPECT_EQ(0u, watch.Use(17).no_cpu_ns);
  EXPECT_EQ(300u, watch.Use(17).cpu_ns);
}

}  // namespace
}  // namespace tcpx
