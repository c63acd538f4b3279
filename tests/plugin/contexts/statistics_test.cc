// What a context counts: its own connections' messages and bytes that were reported done, said once at its end.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "net_socket/plugin/plugin.h"
#include "tests/plugin/contexts/contexts_fixture.h"

namespace tcpx {
namespace {

class StatisticsTest : public ContextsTest {
 protected:
  // One message each of these sizes, into receives that have room for more.
  void Move(const Ends& pair, const std::vector<size_t>& sizes) {
    for (size_t bytes : sizes) {
      std::vector<char> out(bytes + 1), in(bytes + 100);
      auto receive = PostReceive(&net(), pair.receive, in.data(), in.size());
      ASSERT_TRUE(receive.ok()) << receive.status();
      auto send = PostSend(&net(), pair.send, out.data(), bytes);
      ASSERT_TRUE(send.ok()) << send.status();
      const absl::Status moved = WaitForAll(&net(), {*send, *receive});
      ASSERT_TRUE(moved.ok()) << moved;
    }
  }
};

TEST_F(StatisticsTest, EachContextSaysAtItsEndWhatItMoved) {
  Mode settings;
  settings.lanes = 2;
  ASSERT_NO_FATAL_FAILURE(Open(settings));
  void* one = NewContext(0x11, 184);
  void* two = NewContext(0x22, NCCL_NET_TRAFFIC_CLASS_UNDEF);
  void* idle = NewContext(0x33, NCCL_NET_TRAFFIC_CLASS_UNDEF);
  const Ends closed_early = Connect(one, two);
  Move(closed_early, {0, 1, 70000});
  Close(closed_early);
  Move(Connect(one, two), {1000000});  // Left for finalize to close.
  Move(Connect(two, one), {5});
  for (void* context : {one, two, idle}) EXPECT_EQ(ncclSuccess, net().Finalize(context));
  EXPECT_EQ(1, LinesWith(NCCL_LOG_INFO, "comm 11: 3 connections, sent 4 messages of 1070001 bytes, received 1 of 5,"));
  EXPECT_EQ(1, LinesWith(NCCL_LOG_INFO, "comm 22: 3 connections, sent 1 messages of 5 bytes, received 4 of 1070001"));
  EXPECT_EQ(0, LinesWith(NCCL_LOG_INFO, "comm 33:"));
}

// Versions without finalize say it when the last of what they had open is closed.
TEST_F(StatisticsTest, TheContextOfOlderVersionsSaysItWhenNothingIsLeft) {
  Mode settings;
  settings.version = 8;
  ASSERT_NO_FATAL_FAILURE(Open(settings));
  const Ends first = Connect(nullptr, nullptr);
  const Ends second = Connect(nullptr, nullptr);
  Move(first, {100});
  Move(second, {10});
  Close(first);
  EXPECT_EQ(0, LinesWith(NCCL_LOG_INFO, "connections, sent")) << LogText();
  Close(second);
  EXPECT_EQ(1, LinesWith(NCCL_LOG_INFO, "4 connections, sent 2 messages of 110 bytes, received 2 of 110")) << LogText();
}

// Another thread may look while messages move: the numbers only grow, and end where they must.
TEST(ContextStatisticsTest, CanBeReadAtAnyTime) {
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
  setenv("TCPX_THREADS", "0", 1);
  constexpr uint64_t kMessages = 200;
  Plugin plugin;
  ContextOptions options;
  options.api_version = 12;
  Context* context = *plugin.CreateContext(options);
  char handle[kHandleBytes];
  ListenComm* listen = *plugin.Listen(context, 0, handle);
  Comm *send = nullptr, *receive = nullptr;
  Deadline deadline;
  while ((send == nullptr || receive == nullptr) && deadline.Yield()) {
    if (send == nullptr) send = *plugin.Connect(context, 0, handle, {});
    if (receive == nullptr) receive = *plugin.Accept(listen);
  }
  ASSERT_TRUE(send != nullptr && receive != nullptr);
  std::atomic<bool> end{false};
  std::thread reader([&] {
    ContextStatistics before;
    while (!end.load()) {
      const ContextStatistics now = context->Statistics();
      EXPECT_GE(now.sent.messages, before.sent.messages);
      EXPECT_GE(now.received.bytes, before.received.bytes);
      before = now;
    }
  });
  for (uint64_t i = 0; i < kMessages && deadline.Yield(); ++i) {
    char out = 'x', in = 0;
    void* data = &in;
    const size_t capacity = 1;
    const int tag = 0;
    SendArgs to_send;
    to_send.data = &out;
    to_send.bytes = 1;
    ReceiveArgs to_receive;
    to_receive.count = 1;
    to_receive.data = &data;
    to_receive.bytes = &capacity;
    to_receive.tags = &tag;
    Request *sent = nullptr, *received = nullptr;
    ASSERT_TRUE(plugin.Receive(receive, to_receive, &received).ok());
    ASSERT_TRUE(plugin.Send(send, to_send, &sent).ok());
    bool sent_done = false, received_done = false;
    while (!(sent_done && received_done) && deadline.Yield()) {
      if (!sent_done) {
        ASSERT_TRUE(plugin.Test(sent, &sent_done, nullptr).ok());
      }
      if (!received_done) {
        ASSERT_TRUE(plugin.Test(received, &received_done, nullptr).ok());
      }
    }
  }
  end.store(true);
  reader.join();
  for (int look = 0; look < 2; ++look) {
    const ContextStatistics all = context->Statistics();
    EXPECT_EQ(2u, all.connections);
    EXPECT_EQ(kMessages, all.sent.messages);
    EXPECT_EQ(kMessages, all.sent.bytes);
    EXPECT_EQ(kMessages, all.received.messages);
    EXPECT_EQ(kMessages, all.received.bytes);
    if (look == 1) break;
    plugin.CloseComm(send);
    plugin.CloseComm(receive);
  }
  plugin.CloseListen(listen);
  EXPECT_TRUE(plugin.DestroyContext(context).ok());
}

// A context without a logger leaves the others theirs.
TEST_F(StatisticsTest, AContextWithoutALoggerTakesNobodysAway) {
  ASSERT_NO_FATAL_FAILURE(Open({}));
  void* silent = nullptr;
  ASSERT_EQ(ncclSuccess, net().Init(&silent, 0x44, NCCL_NET_TRAFFIC_CLASS_UNDEF, nullptr, nullptr));
  Close(Connect(silent, plugin_->context()));
  EXPECT_EQ(1, LinesWith(NCCL_LOG_INFO, "comm 44 send device")) << LogText();
  EXPECT_EQ(ncclSuccess, net().Finalize(silent));
}

// What is the process's was said with the first one.
TEST_F(StatisticsTest, AConnectionHasOneLineAtEachEnd) {
  for (const int lanes : {1, 4}) {
    Mode settings;
    settings.lanes = lanes;
    ASSERT_NO_FATAL_FAILURE(Open(settings));
    Close(Connect(plugin_->context(), plugin_->context()));
    ClearLog();
    const Ends pair = Connect(plugin_->context(), plugin_->context());
    EXPECT_EQ(1, LinesWith(NCCL_LOG_INFO, " send device ")) << LogText();
    EXPECT_EQ(1, LinesWith(NCCL_LOG_INFO, " receive device ")) << LogText();
    EXPECT_EQ(2u, LogLines(NCCL_LOG_INFO).size()) << LogText();
    Close(pair);
  }
}

TEST_F(StatisticsTest, OneLineNamesTheBuildAndWhatIsInEffect) {
  Mode settings;
  settings.lanes = 3;
  ClearLog();
  ASSERT_NO_FATAL_FAILURE(Open(settings));
  std::vector<std::string> found;
  for (const std::string& line : LogLines(NCCL_LOG_INFO)) {
    if (absl::StartsWith(line, "NET/tcpx: version ")) found.push_back(line);
  }
  ASSERT_EQ(1u, found.size()) << LogText();
  EXPECT_TRUE(absl::StrContains(found[0], ", build ")) << found[0];
  EXPECT_TRUE(absl::StrContains(found[0], "TCPX_LANES=3")) << found[0];
}

}  // namespace
}  // namespace tcpx
