// The lines about strangers: one at once, one with the number of the others when the period is over, and again so.
#include "net_socket/connect/rejected_peers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/deadline.h"
#include "tests/support/kept_log.h"

namespace tcpx {
namespace {

class RejectedPeersTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(reactor_.Start().ok()); }
  void TearDown() override {
    reactor_.RequestStop();
    reactor_.Join();
  }

  void Note(RejectedPeers* rejected, HelloStatus why, int times) {
    reactor_.RunSync([=] {
      for (int i = 0; i < times; ++i) rejected->NoteInLoop(why, *SocketAddress::Parse("10.0.0.7:80"));
    });
  }
  std::vector<std::string> Lines() { return log_.Lines(); }
  void AwaitLines(size_t count) {
    const Deadline deadline;
    while (Lines().size() < count && deadline.Yield()) continue;
    ASSERT_EQ(count, Lines().size());
  }

  KeptLog log_;
  Reactor reactor_;
};

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(RejectedPeersTest, TheOthersAreReportedWhenThePeriodIsOver) {
  RejectedPeers rejected(&reactor_, 20 * kMillisecond);
  Note(&rejected, HelloStatus::kForeign, 5);
  ASSERT_NO_FATAL_FAILURE(AwaitLines(2));
  EXPECT_TRUE(Has(Lines()[0], "stranger 10.0.0.7:80 does not speak tcpx")) << Lines()[0];
  EXPECT_TRUE(Has(Lines()[1], "strangers: 4 more, the latest 10.0.0.7:80: does not speak tcpx")) << Lines()[1];
  reactor_.RunSync([&] { rejected.CloseInLoop(); });
  EXPECT_EQ(2u, Lines().size());
}

TEST_F(RejectedPeersTest, KindsAreCountedEachByItself) {
  RejectedPeers rejected(&reactor_);
  Note(&rejected, HelloStatus::kUnknownTicket, 3);
  Note(&rejected, HelloStatus::kSecretMissing, 1);
  EXPECT_EQ(2u, Lines().size());
  reactor_.RunSync([&] { rejected.CloseInLoop(); });
  ASSERT_EQ(3u, Lines().size());
  EXPECT_TRUE(Has(Lines()[1], "peer, or stranger, 10.0.0.7:80 has no shared secret: set TCPX_SECRET_FILE"))
      << Lines()[1];
  EXPECT_TRUE(Has(Lines()[2], "strangers: 2 more, the latest 10.0.0.7:80: has a ticket")) << Lines()[2];
}

// A lane that had to make room was a peer's as likely as not.
TEST_F(RejectedPeersTest, WhoMayBeAPeerIsNotCalledAStrangerOnly) {
  RejectedPeers rejected(&reactor_);
  Note(&rejected, HelloStatus::kCrowd, 3);
  Note(&rejected, HelloStatus::kLeft, 1);
  reactor_.RunSync([&] { rejected.CloseInLoop(); });
  ASSERT_EQ(3u, Lines().size());
  EXPECT_TRUE(Has(Lines()[0], "lane, or stranger, 10.0.0.7:80 had to make room")) << Lines()[0];
  EXPECT_TRUE(Has(Lines()[1], "lane, or stranger, 10.0.0.7:80 left before")) << Lines()[1];
  EXPECT_TRUE(Has(Lines()[2], "lanes, or strangers: 2 more, the latest 10.0.0.7:80: had to make room")) << Lines()[2];
  for (const std::string& line : Lines()) EXPECT_FALSE(Has(line, "port scan")) << line;
}

}  // namespace
}  // namespace tcpx
