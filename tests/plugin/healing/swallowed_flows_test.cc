// Flows of a running connection are swallowed: what is sent there is dropped without a word, one way or both. Every
// byte arrives, and nobody sees an error.
#include <errno.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

class SwallowedFlowsTest : public RulesTest {
 protected:
  Mode Settings() const override {
    Mode settings = GetParam();
    settings.environment["TCPX_HEAL"] = "1";
    return settings;
  }
};

TEST_P(SwallowedFlowsTest, AnotherSocketCarriesOn) {
  Ends pair;
  MakePair(&pair);
  const std::string small(1000, 's');
  const std::string large(4 << 20, 'l');
  ASSERT_NO_FATAL_FAILURE(Move(pair, large));
  for (const bool both_ways : {true, false}) {
    int swallowed = 0;
    for (const LaneEnd& end : FindLaneEnds()) swallowed += (both_ways || !IsDialled(end.fd)) && Swallow(end.fd);
    ASSERT_GT(swallowed, 0) << strerror(errno);
    ASSERT_NO_FATAL_FAILURE(Move(pair, small));
    ASSERT_NO_FATAL_FAILURE(Move(pair, large));
  }
  EXPECT_TRUE(LogLines(NCCL_LOG_WARN).empty()) << LogText();
  EXPECT_TRUE(LogHas(" goes on, ")) << LogText();
}

INSTANTIATE_TEST_SUITE_P(EveryMode, SwallowedFlowsTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
