// What the built library's statistics count of lanes, and whom they say was waited for.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/plugin/stats/stats_fixture.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

constexpr size_t kHuge = 64 << 20;
constexpr size_t kChunk = 512 << 10;  // TCPX_CHUNK_BYTES' default
constexpr double kSecondNs = 1e9;

class CountedTest : public StatsFixture {
 protected:
  // The sending or the receiving end.
  static Json EndOf(Json all, bool sends) {
    for (const Json& connection : all["connections"].list) {
      if ((connection["direction"].text == "send") == sends) return connection;
    }
    return Json();
  }
  static double LaneSum(Json end, const char* what) {
    double sum = 0;
    for (const Json& lane : end["lanes"].list) sum += lane[what].number;
    return sum;
  }
  // Posts one message, and asks for one of its ends alone until `enough`; then it goes through.
  void LeaveOne(bool leave_send, const std::function<bool()>& enough) {
    const std::vector<char> out(kHuge, 'x');
    std::vector<char> in(kHuge);
    auto received = PostReceive(&plugin_->net(), pair_.receive, in.data(), kHuge);
    auto sent = PostSend(&plugin_->net(), pair_.send, out.data(), kHuge);
    ASSERT_TRUE(received.ok() && sent.ok());
    int done[2] = {};
    bool left = true;
    int64_t turns = 0;
    for (const Deadline deadline; (!done[0] || !done[1] || left) && !deadline.Over(); ++turns) {
      if (left && turns % 1000 == 0) left = !enough();
      ncclResult_t results[2] = {ncclSuccess, ncclSuccess};
      if (!done[0] && !(left && leave_send)) results[0] = plugin_->net().Test(*sent, &done[0], nullptr);
      if (!done[1] && !(left && !leave_send)) results[1] = plugin_->net().Test(*received, &done[1], nullptr);
      ASSERT_TRUE(results[0] == ncclSuccess && results[1] == ncclSuccess);
    }
    EXPECT_FALSE(left);
    ASSERT_TRUE(done[0] && done[1]);
    ASSERT_EQ(out, in);
  }
  // Until two seconds of that end are NCCL's. How many nanoseconds are.
  double LeaveOneUntested(bool sends) {
    double not_tested = 0;
    LeaveOne(sends, [&] {
      not_tested = EndOf(Ask(), sends)["blocked_ns"]["nccl.not_tested"].number;
      return not_tested >= 2 * kSecondNs;
    });
    EXPECT_GE(not_tested, 2 * kSecondNs);
    return not_tested;
  }
};

TEST_P(CountedTest, ChunksCallsAndShortWrites) {
  Open();
  Move(kSmall, 4);
  Json sends;
  // The latest look may be one amid a message.
  const auto all = [&] { return LaneSum(sends, "short_writes") > 0 && LaneSum(sends, "chunks") >= 4 + kHuge / kChunk; };
  for (const Deadline deadline; !deadline.Over() && !all();) {
    Move(kHuge, 1);
    sends = EndOf(Ask(), true);
  }
  EXPECT_TRUE(all());
  EXPECT_GE(LaneSum(sends, "calls"), LaneSum(sends, "short_writes"));
  ASSERT_TRUE(plugin_->Finish().ok());
}

TEST_P(CountedTest, ZeroCopySendsAndThoseCopiedAfterAll) {
  if (GetParam() == 0) GTEST_SKIP() << "only progress threads send without a copy";
  settings_.engine = "io_uring";
  settings_.environment["TCPX_ZEROCOPY"] = "on";
  const std::string reason = settings_.ReasonToSkip();
  if (!reason.empty()) GTEST_SKIP() << reason;
  Open();
  Json sends;
  for (const Deadline deadline; !deadline.Over() && LaneSum(sends, "zero_copy_copied") == 0;) {
    Move(kLarge, 3);
    sends = EndOf(Ask(), true);
  }
  EXPECT_GT(LaneSum(sends, "zero_copy_sends"), 0);
  EXPECT_GT(LaneSum(sends, "zero_copy_copied"), 0);  // As loopback does with all of them.
  EXPECT_GE(LaneSum(sends, "zero_copy_sends"), LaneSum(sends, "zero_copy_copied"));
  ASSERT_TRUE(plugin_->Finish().ok());
}

TEST_P(CountedTest, LanesLostDialledAgainAndResumed) {
  settings_.environment["TCPX_HEAL"] = "1";
  settings_.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
  Open();
  SocketKiller killer(TestSeed());
  Json sends;
  for (const Deadline deadline; !deadline.Over() && sends["lanes_resumed"].number < 2; Move(kLarge, 2)) {
    (void)killer.KillOne();
    Move(kLarge, 2);
    sends = EndOf(Ask(), true);
  }
  EXPECT_GE(sends["lanes_resumed"].number, 2);
  EXPECT_GE(sends["lanes_lost"].number, 2);
  EXPECT_GE(sends["lanes_redialled"].number, sends["lanes_resumed"].number);
  ASSERT_TRUE(plugin_->Finish().ok());
}

TEST_P(CountedTest, ASendThatNobodyAsksForWaitsForNccl) {
  Open();
  LeaveOneUntested(true);
  ASSERT_TRUE(plugin_->Finish().ok());
}

TEST_P(CountedTest, AReceiveThatNobodyAsksForWaitsForNccl) {
  Open();
  const double not_tested = LeaveOneUntested(false);
  const Json receives = EndOf(Ask(), false);  // It has been read.
  EXPECT_GE(receives["blocked_ns"]["nccl.not_tested"].number, not_tested);
  EXPECT_LT(receives["blocked_ns"]["peer.nothing_sent"].number, not_tested);
  ASSERT_TRUE(plugin_->Finish().ok());
}

INSTANTIATE_TEST_SUITE_P(Threads, CountedTest, testing::Values(0, 2),
                         [](const auto& threads) { return threads.param == 0 ? "caller" : "pool"; });

}  // namespace
}  // namespace tcpx
