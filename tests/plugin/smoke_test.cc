// The real shared library, opened as NCCL opens it: one message of each size class over a connection to itself.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/deadline.h"
#include "tests/support/test_plugin.h"

namespace tcpx {
namespace {

TEST(SmokeTest, MovesBytes) {
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  auto opened = NetClient::Open(kPluginPath);
  ASSERT_TRUE(opened.ok()) << opened.status();
  NetClient& net = **opened;
  void* ctx = nullptr;
  ASSERT_EQ(ncclSuccess, net.Init(&ctx, 42, -1, nullptr, nullptr));
  int devices = 0;
  ASSERT_EQ(ncclSuccess, net.Devices(&devices));
  ASSERT_EQ(1, devices);
  char handle[128] = {};
  void* listen = nullptr;
  ASSERT_EQ(ncclSuccess, net.Listen(ctx, 0, handle, &listen));
  Ends ends;
  ASSERT_EQ(ncclSuccess, PollEnds(&net, {ctx, 0, handle, listen}, &ends));
  void *const send = ends.send, *const recv = ends.receive;
  Deadline deadline;
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{100}, size_t{5000}, size_t{70000}, size_t{3000001}}) {
    std::vector<char> out(bytes), in(bytes + 64, 'x');
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i * 7 + bytes);
    void *sreq = nullptr, *rreq = nullptr;
    void* data = in.data();
    size_t size = bytes + 10;
    int tag = 0;
    deadline.Restart();
    // A call gives no request while another thread holds the connection.
    do {
      ASSERT_EQ(ncclSuccess, net.Irecv(recv, 1, &data, &size, &tag, nullptr, nullptr, &rreq));
    } while (rreq == nullptr && deadline.Yield());
    do {
      ASSERT_EQ(ncclSuccess, net.Isend(send, out.data(), bytes, 0, nullptr, nullptr, &sreq));
    } while (sreq == nullptr && deadline.Yield());
    ASSERT_TRUE(rreq != nullptr && sreq != nullptr) << bytes;
    int sdone = 0, rdone = 0, got = -1;
    while (!(sdone && rdone) && deadline.Yield()) {
      if (!sdone) {
        ASSERT_EQ(ncclSuccess, net.Test(sreq, &sdone, nullptr));
      }
      if (!rdone) {
        ASSERT_EQ(ncclSuccess, net.Test(rreq, &rdone, &got));
      }
    }
    ASSERT_TRUE(sdone && rdone) << bytes;
    EXPECT_EQ(static_cast<int>(bytes), got);
    EXPECT_TRUE(std::equal(out.begin(), out.end(), in.begin()));
    EXPECT_EQ('x', in[bytes]);
  }
  EXPECT_EQ(ncclSuccess, net.CloseSend(send));
  EXPECT_EQ(ncclSuccess, net.CloseRecv(recv));
  EXPECT_EQ(ncclSuccess, net.CloseListen(listen));
  EXPECT_EQ(ncclSuccess, net.Finalize(ctx));
}

}  // namespace
}  // namespace tcpx
