// Which contexts there are, and where lines of no context go.
#include "net_socket/plugin/context_table.h"

#include <gtest/gtest.h>

#include <memory>

#include "common/log.h"

namespace tcpx {
namespace {

int g_first = 0;
int g_second = 0;
void First(LogLevel, uint64_t, const char*, int, const char*) { ++g_first; }
void Second(LogLevel, uint64_t, const char*, int, const char*) { ++g_second; }

class ContextTableTest : public ::testing::Test {
 protected:
  void SetUp() override { g_first = g_second = 0; }
  void TearDown() override { SetLogSink(nullptr); }

  Context* Add(int api_version, LogSink log) {
    contexts_.OfferLog(log);
    ContextOptions options;
    options.api_version = api_version;
    options.log = log;
    return contexts_.Add(std::make_unique<Context>(options, kNoTrafficClass, true));
  }

  ContextTable contexts_;
};

TEST_F(ContextTableTest, ANullLoggerReplacesNone) {
  Add(12, &First);
  Add(12, nullptr);
  TCPX_WARN("a line of no context");
  EXPECT_EQ(1, g_first);
}

TEST_F(ContextTableTest, LinesGoToALoggerThatIsStillInUse) {
  Add(12, &First);
  Context* const second = Add(12, &Second);
  TCPX_WARN("to the newest");
  EXPECT_EQ(1, g_second);
  contexts_.Remove(second);
  EXPECT_FALSE(contexts_.contains(second));
  TCPX_WARN("to the one that is left");
  EXPECT_EQ(1, g_first);
  EXPECT_EQ(1, g_second);
}

TEST_F(ContextTableTest, TheLoggerOfTwoStaysWithTheOneThatIsLeft) {
  Context* const gone = Add(12, &First);
  Add(12, &First);
  contexts_.Remove(gone);
  TCPX_WARN("a line of no context");
  EXPECT_EQ(1, g_first);
}

TEST_F(ContextTableTest, TheContextOfOlderVersionsIsTheProcesss) {
  EXPECT_EQ(nullptr, contexts_.legacy());
  Add(12, nullptr);
  EXPECT_EQ(nullptr, contexts_.legacy());
  Context* const old = Add(10, nullptr);
  EXPECT_EQ(old, contexts_.legacy());
}

TEST_F(ContextTableTest, VersionsFrom9OnShowTheHint) {
  EXPECT_FALSE(contexts_.ShowsReceiveHint());
  Add(8, nullptr);
  EXPECT_FALSE(contexts_.ShowsReceiveHint());
  Add(11, nullptr);
  EXPECT_TRUE(contexts_.ShowsReceiveHint());
}

}  // namespace
}  // namespace tcpx
