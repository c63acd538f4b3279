#include "net_socket/stats/snapshot_json.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

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
  EXPECT_EQ("tcpx-io-0", all["threads"][0]["name"].text);
  ASSERT_EQ(2u, all["connections"].size());
  const Json& sends = all["connections"][1];
  EXPECT_EQ("send", sends["direction"].text);
  EXPECT_EQ("0x1234", sends["communicator"].text);
  EXPECT_EQ(20, sends["bulk"]["messages"].number);
  EXPECT_EQ(16384, sends["express"]["p50_ns"].number);
  EXPECT_EQ(7e9, sends["blocked_ns"]["here.no_cpu"].number);
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
  EXPECT_LE(watch.NoCpuNs(getpid()), watch.threads().begin()->second.no_cpu_ns);
}

TEST(ThreadWatchTest, ForgetsThreadsThatHaveEnded) {
  ThreadWatch watch;
  watch.Look({2147483646});
  EXPECT_TRUE(watch.threads().empty());
}

}  // namespace
}  // namespace tcpx
