// mode_test.h: the fixture of tests that run in every mode, and load the library in processes of their own.
//
// Threads: as gtest.
// Errors:  a mode that this machine can't run is a skip that says why.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/support/plugin_mode.h"

namespace tcpx {

// What it sets ends with the case (test_main.cc).
class ModeTest : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().ReasonToSkip();
    if (!missing.empty()) GTEST_SKIP() << missing;
    GetParam().Apply();
  }
};

}  // namespace tcpx
