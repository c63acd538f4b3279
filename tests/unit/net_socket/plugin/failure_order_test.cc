// Two connections of one communicator fail at the same time: no call returns an error before the one line that names
// the cause is in the log.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "net_socket/plugin/plugin.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

std::atomic<bool> g_begun{false};
std::atomic<bool> g_told{false};

// A logger that is slow, as one that writes to a file of a busy server is.
void SlowSink(LogLevel level, uint64_t, const char*, int, const char*) {
  if (level != LogLevel::kWarn) return;
  g_begun.store(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  g_told.store(true);
}

struct Connection {
  Comm* send = nullptr;
  Comm* recv = nullptr;
};

Connection Connect(Plugin* plugin, Context* context) {
  char handle[kHandleBytes] = {};
  ListenComm* listen = *plugin->Listen(context, 0, handle);
  Connection connection;
  Deadline deadline;
  while ((connection.send == nullptr || connection.recv == nullptr) && deadline.Yield()) {
    if (connection.send == nullptr) connection.send = *plugin->Connect(context, 0, handle, ConnectOptions());
    if (connection.recv == nullptr) connection.recv = *plugin->Accept(listen);
  }
  plugin->CloseListen(listen);
  return connection;
}

// Sends to a peer that has closed, until that is known.
absl::Status SendUntilError(Plugin* plugin, Comm* comm) {
  Deadline deadline;
  absl::Status status;
  char byte = 0;
  while (status.ok() && deadline.Yield()) {
    SendArgs args;
    args.data = &byte;
    args.bytes = 1;
    Request* request = nullptr;
    status = plugin->Send(comm, args, &request);
    bool done = false;
    while (status.ok() && request != nullptr && !done && deadline.Yield()) {
      status = plugin->Test(request, &done, nullptr);
    }
  }
  return status;
}

TEST(FailureOrderTest, NoErrorIsReturnedBeforeTheLineThatNamesItsCause) {
  setenv("NCCL_SOCKET_IFNAME", "lo", 1);
  setenv("TCPX_THREADS", "0", 1);
  Plugin plugin;
  ContextOptions options;
  options.api_version = 12;
  options.log = &SlowSink;
  Context* context = *plugin.CreateContext(options);
  const Connection one = Connect(&plugin, context);
  const Connection other = Connect(&plugin, context);
  ASSERT_TRUE(one.recv != nullptr && other.recv != nullptr);
  plugin.CloseComm(one.recv);
  plugin.CloseComm(other.recv);

  absl::Status of_one;
  std::thread thread([&] { of_one = SendUntilError(&plugin, one.send); });
  const Deadline deadline;
  while (!g_begun.load() && deadline.Yield()) {
  }
  const absl::Status of_other = SendUntilError(&plugin, other.send);
  const bool told = g_told.load();
  thread.join();
  EXPECT_FALSE(of_one.ok());
  EXPECT_FALSE(of_other.ok());
  EXPECT_TRUE(told) << of_other;

  plugin.CloseComm(one.send);
  plugin.CloseComm(other.send);
  EXPECT_TRUE(plugin.DestroyContext(context).ok());
  EXPECT_TRUE(plugin.Unload([] { return false; }));
}

}  // namespace
}  // namespace tcpx
