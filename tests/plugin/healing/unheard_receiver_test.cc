// What a receiver says on lane 0, credits of grouped receives, is swallowed, while the sender has nothing to send and
// so nothing to suspect: the receiver asks for another socket.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

class UnheardReceiverTest : public RulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment["TCPX_HEAL"] = "1";
    settings.environment["TCPX_MAX_RECVS"] = "4";
    // No other end of the wait.
    settings.environment["TCPX_PEER_TIMEOUT"] = "3600";
    return settings;
  }
};

TEST_P(UnheardReceiverTest, ItsCreditsComeByAnotherSocket) {
  Ends pair;
  MakePair(&pair);
  const std::string sent(3000, 's');
  Move(pair, sent);
  for (int i = 0; i < 2; ++i) {
    for (const LaneEnd& end : FindLaneEnds()) {
      if (IsDialled(end.fd) && !Swallow(end.fd)) GTEST_SKIP() << "this kernel refuses IP_MINTTL";
    }
    Move(pair, sent);
    Move(pair, sent);
  }
  EXPECT_TRUE(LogHas("nothing of what the peer says on it arrives")) << LogText();
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
}

INSTANTIATE_TEST_SUITE_P(Modes, UnheardReceiverTest, ::testing::ValuesIn(AllModes({1})), ModeName);

}  // namespace
}  // namespace tcpx
