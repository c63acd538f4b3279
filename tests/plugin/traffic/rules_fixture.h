// rules_fixture.h: one test parameter is one mode; each test has a plugin of its own, freshly loaded.
//
// Threads: as gtest. Errors: SetUp fails the test, or skips it with the reason.
#pragma once

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
