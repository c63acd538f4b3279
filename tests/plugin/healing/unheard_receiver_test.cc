// What a receiver says on lane 0, credits of grouped receives, is swallowed, while the sender has nothing to send and so
// nothing to suspect: the receiver asks for another socket.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/log_capture.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

class UnheardReceiverTest : public RulesTest {
 protected:
  LoopbackSettings Settings() const override {
    LoopbackSettings settings = GetParam();
    settings.environment["TCPX_HEAL"] = "1";
    settings.environment["TCPX_MAX_RECVS"] = "4";
    // No other end of the wait.
    settings.environment["TCPX_PEER_TIMEOUT"] = "3600";
    return settings;
  }

  void Exchange(const Pair& pair, const std::string& sent) {
    std::string got(sent.size(), '?');
    auto receive = PostReceive(&net(), pair.receive, &got[0], got.size());
    ASSERT_TRUE(receive.ok()) << receive.status();
    auto send = PostSend(&net(), pair.send, sent.data(), sent.size());
    ASSERT_TRUE(send.ok()) << send.status();
    int sent_it = 0;
    int got_it = 0;
    const Deadline deadline(120);
    while (sent_it == 0 || got_it == 0) {
      if (sent_it == 0) {
        ASSERT_EQ(ncclSuccess, net().Test(*send, &sent_it, nullptr)) << CapturedLog();
      }
      if (got_it == 0) {
        ASSERT_EQ(ncclSuccess, net().Test(*receive, &got_it, nullptr)) << CapturedLog();
      }
      ASSERT_TRUE(deadline.Yield()) << CapturedLog();
    }
    EXPECT_EQ(sent, got);
  }
};

TEST_P(UnheardReceiverTest, ItsCreditsComeByAnotherSocket) {
  Pair pair;
  MakePair(&pair);
  const std::string sent(3000, 's');
  Exchange(pair, sent);
  for (int i = 0; i < 2; ++i) {
    for (const LaneEnd& end : FindLaneEnds()) {
      if (end.dialled && !Swallow(end.fd)) GTEST_SKIP() << "this kernel refuses IP_MINTTL";
    }
    Exchange(pair, sent);
    Exchange(pair, sent);
  }
  EXPECT_TRUE(absl::StrContains(CapturedLog(), "nothing of what the peer says on it arrives")) << CapturedLog();
  EXPECT_TRUE(CapturedLines(NCCL_LOG_WARN).empty()) << CapturedLog();
}

std::vector<LoopbackSettings> OneLane() {
  std::vector<LoopbackSettings> modes;
  for (LoopbackSettings& mode : AllModes({AF_INET})) {
    if (mode.lanes == 1) modes.push_back(mode);
  }
  return modes;
}

INSTANTIATE_TEST_SUITE_P(Modes, UnheardReceiverTest, ::testing::ValuesIn(OneLane()), ModeName);

}  // namespace
}  // namespace tcpx
