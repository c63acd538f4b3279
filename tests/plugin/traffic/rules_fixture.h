// rules_fixture.h: one test parameter is one mode; each test has a plugin of its own, freshly loaded.
//
// Threads: as gtest. Errors: SetUp fails the test, or skips it with the reason.
#ifndef TCPX_TESTS_PLUGIN_TRAFFIC_RULES_FIXTURE_H_
#define TCPX_TESTS_PLUGIN_TRAFFIC_RULES_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/pattern.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/seed.h"
#include "tests/support/test_plugin.h"

namespace tcpx {

class RulesTest : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    const std::string reason = GetParam().ReasonToSkip();
    if (!reason.empty()) GTEST_SKIP() << reason;
    auto opened = TestPlugin::Open(Settings());
    ASSERT_TRUE(opened.ok()) << opened.status();
    plugin_ = *std::move(opened);
  }

  void TearDown() override {
    if (plugin_ == nullptr) return;
    const absl::Status status = plugin_->Finish();
    EXPECT_TRUE(status.ok()) << status;
  }

  virtual Mode Settings() const { return GetParam(); }
  NetClient& net() { return plugin_->net(); }

  // A new pair; the test ends when there is none.
  void MakePair(Ends* pair) {
    auto made = plugin_->Connect();
    ASSERT_TRUE(made.ok()) << made.status();
    *pair = *made;
  }

  // The first error of a receive, or OK when it is done.
  absl::Status Received(void* comm, std::string* buffer) {
    auto request = PostReceive(&net(), comm, &(*buffer)[0], buffer->size());
    return request.ok() ? WaitFor(&net(), *request) : request.status();
  }

  std::unique_ptr<TestPlugin> plugin_;
};

}  // namespace tcpx

#endif  // TCPX_TESTS_PLUGIN_TRAFFIC_RULES_FIXTURE_H_
