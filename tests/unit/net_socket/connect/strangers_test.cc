// The lines about strangers: one at once, one with the number of the others when the period is over, and again so.
#include "net_socket/connect/strangers.h"

#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "common/log.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

std::mutex mutex;
std::vector<std::string>* lines = nullptr;

void Keep(LogLevel, uint64_t, const char*, int, const char* text) {
  std::lock_guard<std::mutex> lock(mutex);
  lines->push_back(text);
}

class StrangersLogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    lines = &lines_;
    SetLogSink(Keep);
    ASSERT_TRUE(reactor_.Start().ok());
  }
  void TearDown() override {
    reactor_.RequestStop();
    reactor_.Join();
    SetLogSink(nullptr);
  }

  void Note(Strangers* strangers, Stranger kind, int times) {
    reactor_.RunSync([=] {
      for (int i = 0; i < times; ++i) strangers->NoteInLoop(kind, *SocketAddress::Parse("10.0.0.7:80"));
    });
  }
  std::vector<std::string> Lines() {
    std::lock_guard<std::mutex> lock(mutex);
    return lines_;
  }
  void AwaitLines(size_t count) {
    const Deadline deadline;
    while (Lines().size() < count && deadline.Yield()) continue;
    ASSERT_EQ(count, Lines().size());
  }

  Reactor reactor_;
  std::vector<std::string> lines_;
};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(StrangersLogTest, TheOthersAreToldWhenThePeriodIsOver) {
  Strangers strangers(&reactor_, 20 * kMillisecond);
  Note(&strangers, Stranger::kForeign, 5);
  ASSERT_NO_FATAL_FAILURE(AwaitLines(2));
  EXPECT_TRUE(Has(Lines()[0], "stranger 10.0.0.7:80 does not speak tcpx")) << Lines()[0];
  EXPECT_TRUE(Has(Lines()[1], "strangers: 4 more, the latest 10.0.0.7:80: does not speak tcpx")) << Lines()[1];
  reactor_.RunSync([&] { strangers.CloseInLoop(); });
  EXPECT_EQ(2u, Lines().size());
}

TEST_F(StrangersLogTest, KindsAreCountedEachByItself) {
  Strangers strangers(&reactor_);
  Note(&strangers, Stranger::kTicket, 3);
  Note(&strangers, Stranger::kNoSecret, 1);
  EXPECT_EQ(2u, Lines().size());
  reactor_.RunSync([&] { strangers.CloseInLoop(); });
  ASSERT_EQ(3u, Lines().size());
  EXPECT_TRUE(Has(Lines()[1], "has no shared secret: set TCPX_SECRET_FILE")) << Lines()[1];
  EXPECT_TRUE(Has(Lines()[2], "strangers: 2 more, the latest 10.0.0.7:80: has a ticket")) << Lines()[2];
}

}  // namespace
}  // namespace tcpx
