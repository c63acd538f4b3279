// Flows of a running connection are swallowed: what is sent there is dropped without a word, one way or both. Every byte
// arrives, and nobody sees an error.
#include <errno.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/plugin/traffic/modes.h"
#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/log_capture.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

class SwallowedFlowsTest : public RulesTest {
 protected:
  LoopbackSettings Settings() const override {
    LoopbackSettings settings = GetParam();
    settings.environment["TCPX_HEAL"] = "1";
    return settings;
  }

  // A small and a large message, while both ends are driven.
  void Exchange(const Pair& pair, const std::string& sent) {
    std::string got(sent.size(), '?');
    auto receive = PostReceive(&net(), pair.receive, &got[0], got.size());
    ASSERT_TRUE(receive.ok()) << receive.status();
    auto send = PostSend(&net(), pair.send, sent.data(), sent.size());
    ASSERT_TRUE(send.ok()) << send.status();
    const Deadline deadline(120);
    bool sending = true;
    bool receiving = true;
    while (sending || receiving) {
      int done = 0;
      if (sending) {
        ASSERT_EQ(ncclSuccess, net().Test(*send, &done, nullptr)) << CapturedLog();
        sending = done == 0;
      }
      if (receiving) {
        ASSERT_EQ(ncclSuccess, net().Test(*receive, &done, nullptr)) << CapturedLog();
        receiving = done == 0;
      }
      ASSERT_TRUE(deadline.Yield()) << CapturedLog();
    }
    ASSERT_EQ(sent, got);
  }
};

TEST_P(SwallowedFlowsTest, AnotherSocketCarriesOn) {
  Pair pair;
  MakePair(&pair);
  const std::string small(1000, 's');
  const std::string large(4 << 20, 'l');
  ASSERT_NO_FATAL_FAILURE(Exchange(pair, large));
  for (const bool both_ways : {true, false}) {
    int swallowed = 0;
    for (const LaneEnd& end : FindLaneEnds()) swallowed += (both_ways || !end.dialled) && Swallow(end.fd);
    ASSERT_GT(swallowed, 0) << strerror(errno);
    ASSERT_NO_FATAL_FAILURE(Exchange(pair, small));
    ASSERT_NO_FATAL_FAILURE(Exchange(pair, large));
  }
  EXPECT_TRUE(CapturedLines(NCCL_LOG_WARN).empty()) << CapturedLog();
  EXPECT_TRUE(absl::StrContains(CapturedLog(), " goes on, ")) << CapturedLog();
}

INSTANTIATE_TEST_SUITE_P(EveryMode, SwallowedFlowsTest, ::testing::ValuesIn(AllModes({AF_INET})), ModeName);

}  // namespace
}  // namespace tcpx
