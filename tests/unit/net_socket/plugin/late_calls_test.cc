// Threads that poll a connect and an accept while the library ends, as at exit: they get an error, and meet nothing
// that was freed.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "net_socket/plugin/plugin.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_acceptor.h"

namespace tcpx {
namespace {

bool NoGroups() { return false; }

class LateCallsTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
    setenv("TCPX_THREADS", "0", 1);
    ContextOptions options;
    options.api_version = GetParam();
    context_ = *plugin_.CreateContext(options);
    listen_ = *plugin_.Listen(context_, 0, handle_.data());
    silent_.WriteHandle(handle_.data());
    ASSERT_EQ(nullptr, *plugin_.Connect(context_, 0, handle_.data(), {}));
  }
  absl::Status Connects() { return plugin_.Connect(context_, 0, handle_.data(), {}).status(); }
  absl::Status Accepts() { return plugin_.Accept(listen_).status(); }

  const FakeAcceptor silent_;  // Its kernel accepts.
  Plugin plugin_;
  Context* context_ = nullptr;
  ListenComm* listen_ = nullptr;
  alignas(8) std::array<char, kHandleBytes> handle_ = {};
};

TEST_P(LateCallsTest, AreRefused) {
  std::atomic<int> calls{0};
  const auto poll = [&](const std::function<absl::Status()>& call) {
    absl::Status status;
    const Deadline deadline;
    for (; status.ok() && !deadline.Over(); ++calls) status = call();
    EXPECT_EQ("tcpx is being unloaded", status.message());
  };
  std::thread connects(poll, [this] { return Connects(); });
  std::thread accepts(poll, [this] { return Accepts(); });
  const Deadline deadline;
  while (calls < 100 && deadline.Yield()) {
  }
  EXPECT_TRUE(plugin_.Unload(&NoGroups));
  connects.join();
  accepts.join();
  EXPECT_FALSE(plugin_.Listen(context_, 0, handle_.data()).ok());
  EXPECT_FALSE(plugin_.CreateContext({}).ok());
  EXPECT_FALSE(plugin_.DeviceCount().ok());
  EXPECT_FALSE(plugin_.OfferRma().has_value());
  plugin_.CloseListen(listen_);
  EXPECT_TRUE(plugin_.DestroyContext(context_).ok());
}

// A group of one-sided transfers that is connecting has no comm yet.
TEST_P(LateCallsTest, FindAllAsItWasWhereGroupsAreLeft) {
  EXPECT_FALSE(plugin_.Unload([] { return true; }));
  EXPECT_TRUE(Connects().ok());
  EXPECT_TRUE(Accepts().ok());
  plugin_.CloseListen(listen_);
  EXPECT_TRUE(plugin_.DestroyContext(context_).ok());
}

// One of them comes up while the calls that are inside are awaited.
TEST_P(LateCallsTest, FindAllAsItWasWhereAGroupComesInBetween) {
  int asked = 0;
  EXPECT_FALSE(plugin_.Unload([&] { return ++asked > 1; }));
  EXPECT_EQ(2, asked);
  EXPECT_TRUE(Accepts().ok());
  plugin_.CloseListen(listen_);
  EXPECT_TRUE(plugin_.DestroyContext(context_).ok());
}

INSTANTIATE_TEST_SUITE_P(Versions, LateCallsTest, ::testing::Values(12, 10));

}  // namespace
}  // namespace tcpx
