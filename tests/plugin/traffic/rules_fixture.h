// rules_fixture.h: one test parameter is one mode; each test has a plugin of its own, freshly loaded.
//
// Threads: as gtest. Errors: SetUp fails the test, or skips it with the reason.
#ifndef TCPX_TESTS_PLUGIN_TRAFFIC_RULES_FIXTURE_H_
#define TCPX_TESTS_PLUGIN_TRAFFIC_RULES_FIXTURE_H_

#include <gtest/gtest.h>

#include <string>

#include "tests/support/pattern.h"
#include "tests/support/plugin_test.h"
#include "tests/support/seed.h"

namespace tcpx {

class RulesTest : public PluginTest, public ::testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    const std::string reason = GetParam().ReasonToSkip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    Open(Settings());
  }

  virtual Mode Settings() const { return GetParam(); }
};

}  // namespace tcpx

#endif  // TCPX_TESTS_PLUGIN_TRAFFIC_RULES_FIXTURE_H_
