// contexts_fixture.h: contexts of the real shared library, and connections between them.
//
// Threads: as gtest. Errors: helpers fail the test.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/plugin/contexts/lane_view.h"
#include "tests/support/deadline.h"
#include "tests/support/own_network.h"
#include "tests/support/plugin_test.h"

namespace tcpx {

class ContextsTest : public PluginTest {
 protected:
  // Null before v11.
  void* NewContext(uint64_t comm_id, int traffic_class) {
    auto context = plugin_->NewContext(comm_id, traffic_class);
    EXPECT_TRUE(context.ok()) << context.status();
    return context.ok() ? *context : nullptr;
  }

  Ends Connect(void* dialling, void* listening) {
    auto ends = plugin_->Connect(dialling, listening);
    EXPECT_TRUE(ends.ok()) << ends.status();
    return ends.ok() ? *ends : Ends();
  }

  void Close(const Ends& pair) {
    const absl::Status status = plugin_->Close(pair);
    EXPECT_TRUE(status.ok()) << status;
  }

  static int LinesWith(ncclDebugLogLevel level, const std::string& part) {
    const std::vector<std::string> lines = LogLines(level);
    return static_cast<int>(std::count_if(lines.begin(), lines.end(),
                                          [&](const std::string& line) { return absl::StrContains(line, part); }));
  }
};

}  // namespace tcpx
