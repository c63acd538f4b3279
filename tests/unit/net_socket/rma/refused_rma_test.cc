// In a forked child nothing of the parent's groups is touched.
#include "net_socket/plugin/refused_rma.h"

#include "gtest/gtest.h"
#include "tests/unit/net_socket/rma/fake_net.h"

namespace tcpx {
namespace {

TEST(RefusedRmaTest, RefusesEveryCallWithThePluginsWords) {
  FakePlugin plugin;
  plugin.status = absl::UnknownError("a forked child");
  RefusedRma rma(&plugin);
  RmaRequest* request = nullptr;
  bool done = false;
  EXPECT_EQ(rma.Post(nullptr, 0, RmaOperation(), &request), plugin.status);
  EXPECT_EQ(rma.Flush(nullptr, 0, 0, &request), plugin.status);
  EXPECT_EQ(rma.Test(nullptr, nullptr, &done), plugin.status);
  EXPECT_EQ(rma.Progress(nullptr), plugin.status);
  EXPECT_TRUE(rma.HasFailed(nullptr));
  EXPECT_FALSE(rma.Offered());
  EXPECT_EQ(rma.Listen(nullptr, 0, nullptr).status(), plugin.status);
  EXPECT_EQ(rma.Connect(nullptr, {}, 0).status(), plugin.status);
  EXPECT_EQ(rma.OpenContexts(nullptr, 1, 0).status(), plugin.status);
  EXPECT_EQ(rma.Register(nullptr, nullptr, 0, MemoryType::kHost, RmaUse::kOther).status(), plugin.status);
  rma.Deregister(nullptr, 1);
  rma.CloseContexts(nullptr);
  rma.Close(nullptr);
  rma.CloseListen(nullptr);
}

}  // namespace
}  // namespace tcpx
