// mode_test.h: the fixture of the tests that run in every mode.
//
// Errors: a mode that this machine can't run is a skip that says why.
#ifndef TCPX_TESTS_PLUGIN_LIFETIME_MODE_TEST_H_
#define TCPX_TESTS_PLUGIN_LIFETIME_MODE_TEST_H_

#include <gtest/gtest.h>

#include <string>

#include "tests/plugin/lifetime/modes.h"

namespace tcpx {

class ModeTest : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().MissingHere();
    if (!missing.empty()) GTEST_SKIP() << missing;
    GetParam().Apply();
  }
};

inline std::string ModeName(const ::testing::TestParamInfo<Mode>& info) { return NameOf(info.param); }

}  // namespace tcpx

#endif  // TCPX_TESTS_PLUGIN_LIFETIME_MODE_TEST_H_
