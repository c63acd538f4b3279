// What a trace is made of: texts, times, rows, and a file that grows up to a bound.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "profiler/trace_file.h"
#include "profiler/tracks.h"

namespace tcpx {
namespace {

class TraceTest : public testing::Test {
 protected:
  TraceTest() {
    std::string name = testing::TempDir() + "/trace.XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ + "/" + name).rdbuf();
    return text.str();
  }

  std::string folder_;
};

TEST_F(TraceTest, AnEventThatEndsBeforeItsBeginLastsNoTime) {
  TraceFile file(folder_ + "/trace.json", 1 << 30);
  ASSERT_TRUE(file.Open().ok());
  Event event;
  event.facts.type = ncclProfileProxyOp;
  event.begin_ns = 2000;
  event.end_ns = 950;
  AppendEvent(event, 1, &file);
  file.Close();
  EXPECT_TRUE(absl::StrContains(Read("trace.json"), R"("ts":2.000,"dur":0.000,)")) << Read("trace.json");
}

// Somebody knows the name, and leaves a link to what is ours, or a pipe.
TEST_F(TraceTest, WhatLiesThereIsNotWrittenTo) {
  std::ofstream(folder_ + "/precious") << "mine";
  ASSERT_EQ(0, link((folder_ + "/precious").c_str(), (folder_ + "/trace.json").c_str()));
  {
    TraceFile file(folder_ + "/trace.json", 1 << 20);
    ASSERT_TRUE(file.Open().ok());
  }
  EXPECT_EQ("mine", Read("precious"));
  EXPECT_EQ("[\n]\n", Read("trace.json"));
  ASSERT_EQ(0, mkfifo((folder_ + "/pipe.json").c_str(), 0666));
  TraceFile file(folder_ + "/pipe.json", 1 << 20);
  EXPECT_TRUE(file.Open().ok());
  file.Close();
  EXPECT_EQ("[\n]\n", Read("pipe.json"));
}

TEST_F(TraceTest, AFolderInWhichOthersReplaceFilesIsRefused) {
  for (const mode_t mode : {0700, 0775, 01777}) {
    ASSERT_EQ(0, chmod(folder_.c_str(), mode));
    EXPECT_TRUE(TraceFile(folder_ + "/trace.json", 1 << 20).Open().ok()) << mode;
  }
  ASSERT_EQ(0, chmod(folder_.c_str(), 0777));
  TraceFile open_to_all(folder_ + "/trace.json", 1 << 20);
  EXPECT_TRUE(absl::StrContains(open_to_all.Open().message(), "chmod +t")) << open_to_all.status();
  ASSERT_EQ(0, chmod(folder_.c_str(), 0700));
  if (chown(folder_.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root gives folders away";
  TraceFile foreign(folder_ + "/trace.json", 1 << 20);
  EXPECT_TRUE(absl::StrContains(foreign.Open().message(), "another user's")) << foreign.status();
  EXPECT_EQ(0, chown(folder_.c_str(), geteuid(), getegid()));
}

// Their names alone would fill the file.
TEST_F(TraceTest, ManyRowsInASmallFileLeaveRoomForEvents) {
  constexpr int kRows = 8000;
  constexpr int kEvents = 1000;
  constexpr uint64_t kBytes = 1 << 20;
  TraceFile file(folder_ + "/trace.json", kBytes);
  ASSERT_TRUE(file.Open().ok());
  for (uint32_t i = 1; i <= kRows; ++i) file.AppendName(NameLine("thread_name", std::string(64, 'x'), 1, i), i);
  for (int i = 0; i < kEvents; ++i) {
    file.Append(MomentLine("moment", i, 1, "number", i));
    file.Flush();
  }
  file.Close();
  const std::string trace = Read("trace.older.json") + Read("trace.json");
  EXPECT_LE(trace.size(), kBytes + (128 << 10));
  for (int i = 0; i < kEvents; ++i) {
    ASSERT_TRUE(absl::StrContains(trace, absl::StrCat(R"({"number":)", i, "}"))) << i;
  }
}

TEST_F(TraceTest, KindsBeyondTheLastRowAreNotRemembered) {
  Tracks tracks;
  const auto name = [] { return std::string("row"); };
  for (uint64_t key = 0; key < 2 * Tracks::kTracksMax; ++key) {
    const uint32_t row = key % 2 == 0 ? tracks.Take(key, name) : tracks.Place(key, 1, 2, name);
    EXPECT_EQ(row == 0, key + 1 >= Tracks::kTracksMax) << key;
  }
  EXPECT_LE(tracks.kinds(), Tracks::kTracksMax);
  // Those that it knows go on.
  tracks.Release(1);
  EXPECT_EQ(tracks.Take(0, name), 1u);
  EXPECT_EQ(tracks.Place(1, 2, 3, name), 2u);
}

}  // namespace
}  // namespace tcpx
