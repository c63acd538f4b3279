#include "common/log.h"

#include <stdlib.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace {

struct Line {
  LogLevel level;
  uint64_t subsystem;
  std::string file;
  int line;
  std::string text;
};

std::vector<Line>* lines = nullptr;  // of the running test

void Capture(LogLevel level, uint64_t subsystem, const char* file, int line, const char* text) {
  lines->push_back({level, subsystem, file, line, text});
}

class LogTest : public testing::Test {
 protected:
  LogTest() { lines = &captured_; }
  ~LogTest() override {
    SetDebug(nullptr);
    SetLogSink(nullptr);
    lines = nullptr;
  }

  static void SetDebug(const char* value) {
    if (value == nullptr) {
      unsetenv("NCCL_DEBUG");
    } else {
      setenv("NCCL_DEBUG", value, 1);
    }
  }

  static void LogOneOfEach() {
    TCPX_WARN("warn %d", 1);
    TCPX_INFO("info %s", "two");
    TCPX_TRACE("trace %.1f", 3.0);
  }

  std::vector<Line> captured_;
};

TEST_F(LogTest, SinkGetsPrefixedLinesWithTheirSubsystems) {
  SetDebug("TRACE");
  SetLogSink(&Capture);
  LogOneOfEach();
  ASSERT_EQ(captured_.size(), 3u);
  EXPECT_EQ(captured_[0].level, LogLevel::kWarn);
  EXPECT_EQ(captured_[0].subsystem, ~uint64_t{0});  // else NCCL_DEBUG_SUBSYS would hide a warning
  EXPECT_EQ(captured_[0].text, "NET/tcpx: warn 1");
  EXPECT_NE(captured_[0].file.find("log_test.cc"), std::string::npos);
  EXPECT_GT(captured_[0].line, 0);
  EXPECT_EQ(captured_[1].level, LogLevel::kInfo);
  EXPECT_EQ(captured_[1].subsystem, uint64_t{0x11});
  EXPECT_EQ(captured_[1].text, "NET/tcpx: info two");
  EXPECT_EQ(captured_[2].level, LogLevel::kTrace);
  EXPECT_EQ(captured_[2].subsystem, uint64_t{0x10});
  EXPECT_EQ(captured_[2].text, "NET/tcpx: trace 3.0");
}

TEST_F(LogTest, ArgumentsOfALevelThatIsOffAreNotEvaluated) {
  SetDebug("INFO");
  SetLogSink(&Capture);
  int evaluated = 0;
  TCPX_TRACE("%d", ++evaluated);
  EXPECT_EQ(evaluated, 0);
  TCPX_INFO("%d", ++evaluated);
  EXPECT_EQ(evaluated, 1);
  EXPECT_EQ(captured_.size(), 1u);
}

struct LevelCase {
  const char* debug;  // null: unset
  bool info;          // without a sink
  bool trace;
};

class LogLevelTest : public LogTest, public testing::WithParamInterface<LevelCase> {};

TEST_P(LogLevelTest, StderrFollowsNcclDebug) {
  SetDebug(GetParam().debug);
  SetLogSink(nullptr);
  testing::internal::CaptureStderr();
  LogOneOfEach();
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_NE(out.find("NET/tcpx: warn 1\n"), std::string::npos) << out;
  EXPECT_EQ(out.find("NET/tcpx: info two\n") != std::string::npos, GetParam().info) << out;
  EXPECT_EQ(out.find("NET/tcpx: trace 3.0\n") != std::string::npos, GetParam().trace) << out;
}

TEST_P(LogLevelTest, ASinkFiltersInfoItself) {
  SetDebug(GetParam().debug);
  SetLogSink(&Capture);
  EXPECT_TRUE(LogEnabled(LogLevel::kWarn));
  EXPECT_TRUE(LogEnabled(LogLevel::kInfo));
  EXPECT_EQ(LogEnabled(LogLevel::kTrace), GetParam().trace);
}

INSTANTIATE_TEST_SUITE_P(NcclDebug, LogLevelTest,
                         testing::Values(LevelCase{nullptr, false, false}, LevelCase{"", false, false},
                                         LevelCase{"VERSION", false, false}, LevelCase{"WARN", false, false},
                                         LevelCase{"INFO", true, false}, LevelCase{"info", true, false},
                                         LevelCase{"TRACE", true, true}, LevelCase{"nonsense", false, false}));

// A parameter's value may hold anything.
TEST_F(LogTest, ControlCharactersDoNotBreakALine) {
  SetLogSink(&Capture);
  TCPX_WARN("TCPX_FUSE is \"%s\"", "eth1\nNET/tcpx: all is well\x1b[2J\x7f \xc3\xa4");
  ASSERT_EQ(captured_.size(), 1u);
  EXPECT_EQ(captured_[0].text, "NET/tcpx: TCPX_FUSE is \"eth1\\x0aNET/tcpx: all is well\\x1b[2J\\x7f \xc3\xa4\"");
}

TEST_F(LogTest, PercentSignsInArgumentsAreText) {
  SetLogSink(&Capture);
  TCPX_WARN("%s", "100%s %n");
  ASSERT_EQ(captured_.size(), 1u);
  EXPECT_EQ(captured_[0].text, "NET/tcpx: 100%s %n");
}

}  // namespace
}  // namespace tcpx
