// plugin_test.h: the fixture of tests that load the plugin into their own process.
//
// Threads: as gtest.
// Lifetime: a plugin of its own for each case; TearDown closes what is open and finalizes.
// Errors:  each helper fails the test.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "tests/support/plugin_log.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/test_plugin.h"

namespace tcpx {

class PluginTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (plugin_ == nullptr) return;
    const absl::Status status = plugin_->Finish();
    EXPECT_TRUE(status.ok()) << status;
  }

  // Loads the plugin anew.
  void Open(const Mode& mode) {
    plugin_.reset();
    auto opened = TestPlugin::Open(mode);
    ASSERT_TRUE(opened.ok()) << opened.status();
    plugin_ = *std::move(opened);
  }
  // The same, connected to itself.
  void OpenPair(const Mode& mode) {
    ASSERT_NO_FATAL_FAILURE(Open(mode));
    MakePair(&pair_);
  }
  void MakePair(Ends* pair) {
    auto made = plugin_->Connect();
    ASSERT_TRUE(made.ok()) << made.status();
    *pair = *made;
  }

  NetClient& net() { return plugin_->net(); }
  // One message, which arrives as it was.
  void Move(const Ends& pair, const std::string& text) {
    const absl::Status status = tcpx::Move(&net(), pair, text);
    ASSERT_TRUE(status.ok()) << status;
  }
  // The first error of a receive, or OK when it is done.
  absl::Status Received(void* comm, std::string* buffer) {
    auto request = PostReceive(&net(), comm, &(*buffer)[0], buffer->size());
    return request.ok() ? WaitFor(&net(), *request) : request.status();
  }

  std::unique_ptr<TestPlugin> plugin_;
  Ends pair_;
};

}  // namespace tcpx
