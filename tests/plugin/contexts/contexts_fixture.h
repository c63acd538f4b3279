// contexts_fixture.h: contexts of the real shared library, and connections between them.
//
// Threads: as gtest. Errors: helpers fail the test.
#ifndef TCPX_TESTS_PLUGIN_CONTEXTS_CONTEXTS_FIXTURE_H_
#define TCPX_TESTS_PLUGIN_CONTEXTS_CONTEXTS_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/plugin/contexts/lane_view.h"
#include "tests/support/deadline.h"
#include "tests/support/log_capture.h"
#include "tests/support/own_network.h"
#include "tests/support/pair.h"

namespace tcpx {

class ContextsTest : public ::testing::Test {
 protected:
  void Open(LoopbackSettings settings) {
    plugin_.reset();
    auto opened = Loopback::Open(settings);
    ASSERT_TRUE(opened.ok()) << opened.status();
    plugin_ = *std::move(opened);
  }

  void TearDown() override {
    if (plugin_ == nullptr) return;
    const absl::Status status = plugin_->Finish();
    EXPECT_TRUE(status.ok()) << status;
  }

  NetClient& net() { return plugin_->net(); }

  // Null before v11.
  void* NewContext(uint64_t comm_id, int traffic_class) {
    void* context = nullptr;
    EXPECT_EQ(ncclSuccess, net().Init(&context, comm_id, traffic_class, CapturingLogger(), nullptr)) << CapturedLog();
    return context;
  }

  Pair Connect(void* dialling, void* listening) {
    char handle[NCCL_NET_HANDLE_MAXSIZE] = {};
    void* listen = nullptr;
    Pair pair;
    EXPECT_EQ(ncclSuccess, net().Listen(listening, 0, handle, &listen)) << CapturedLog();
    Deadline deadline;
    bool good = true;
    while (good && (pair.send == nullptr || pair.receive == nullptr)) {
      if (pair.send == nullptr) good = net().Connect(dialling, 0, handle, &pair.send) == ncclSuccess;
      if (good && pair.receive == nullptr) good = net().Accept(listen, &pair.receive) == ncclSuccess;
      good = good && deadline.Yield();
    }
    EXPECT_TRUE(good) << CapturedLog();
    EXPECT_EQ(ncclSuccess, net().CloseListen(listen));
    return pair;
  }

  void Close(const Pair& pair) {
    EXPECT_EQ(ncclSuccess, net().CloseSend(pair.send));
    EXPECT_EQ(ncclSuccess, net().CloseRecv(pair.receive));
  }

  static int LinesWith(ncclDebugLogLevel level, const std::string& part) {
    const std::vector<std::string> lines = CapturedLines(level);
    return static_cast<int>(std::count_if(lines.begin(), lines.end(),
                                          [&](const std::string& line) { return absl::StrContains(line, part); }));
  }

  std::unique_ptr<Loopback> plugin_;
};

}  // namespace tcpx

#endif  // TCPX_TESTS_PLUGIN_CONTEXTS_CONTEXTS_FIXTURE_H_
