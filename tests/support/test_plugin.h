// test_plugin.h: the real shared library, opened as NCCL does it, and connected: to itself, or to other processes.
//
// Purpose: the one place where tests load the plugin, make contexts, poll connects and accepts, post and wait.
//
//   auto plugin = TestPlugin::Open({.threads = 2, .engine = "epoll", .lanes = 4});
//   auto ends = (*plugin)->Connect();
//   ... (*plugin)->net().Isend(ends->send, ...) ...
// Killed:  with TCPX_TEST_KILL_US=N in the environment the socket of a lane of this process dies every N us
//          (socket_killer.h), from its first connection on, but not while one is being made or closed here.
//          The one who sets that also sets TCPX_HEAL.
// Sealed:  with TCPX_TEST_MUST_ENCRYPT in the environment Open fails where the plugin does not say that it encrypts.
// Threads: Open and the destructor by one thread while no other TestPlugin exists; Connect from any; net() as
//          NetClient.
// Lifetime: the plugin reads its environment once after it is loaded. Open(mode) loads it anew, and its destructor
//          closes what is still open, finalizes and unloads. OpenAsIs leaves closing and finalizing to its caller.
// Errors:  a Status with the plugin's result and its log. Every wait is bounded (deadline.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/client/net_client.h"
#include "tests/support/plugin_mode.h"

namespace tcpx {

class KillerThread;

inline constexpr char kPluginPath[] = "net_socket/libnccl-net-tcpx.so";
inline constexpr size_t kHandleBytesMax = NCCL_NET_HANDLE_MAXSIZE;

// Comms of this process: both ends of one connection, or one to a peer and one from it.
struct Ends {
  void* send = nullptr;
  void* receive = nullptr;
};

// What a connect needs.
struct Dialling {
  void* context = nullptr;
  int device = 0;
  char* handle = nullptr;  // null: this process does not dial
  void* listen = nullptr;  // null: this process does not accept
};

// Polls connect and accept until the ends are there that are asked for. The first refusal; ncclInProgress: the time is
// over.
ncclResult_t PollEnds(NetClient* net, const Dialling& dialling, Ends* ends);

class TestPlugin {
 public:
  // In the environment of `mode`.
  static absl::StatusOr<std::unique_ptr<TestPlugin>> Open(const Mode& mode);
  // In the environment that is there. Version 0: the newest.
  static absl::StatusOr<std::unique_ptr<TestPlugin>> OpenAsIs(int version);
  ~TestPlugin();

  NetClient& net() { return *net_; }
  void* context() { return context_; }

  // Another context of the same library; null before v11.
  absl::StatusOr<void*> NewContext(uint64_t comm_id = 42, int traffic_class = NCCL_NET_TRAFFIC_CLASS_UNDEF);
  // A listen comm, and its handle for connect.
  absl::StatusOr<void*> Listen(char* handle) { return Listen(context_, handle); }
  absl::StatusOr<void*> Listen(void* context, char* handle, int device = 0);
  // Connects to `handle` and accepts from `listen`. `handle` itself is left as it is.
  absl::StatusOr<Ends> ConnectTo(void* listen, const char* handle) { return ConnectTo(context_, listen, handle); }
  absl::StatusOr<Ends> ConnectTo(void* context, void* listen, const char* handle, int device = 0);
  // Both ends of one connection.
  absl::StatusOr<Ends> Connect() { return Connect(context_, context_); }
  absl::StatusOr<Ends> Connect(void* dialling, void* listening);

  absl::Status Close(const Ends& ends);
  absl::Status CloseListen(void* listen);
  absl::Status Finalize();
  // Closes what is open and finalizes.
  absl::Status Finish();

 private:
  TestPlugin() = default;
  absl::Status Load(int version, ncclProfilerCallback_t profiler);
  KillerThread* Killer();
  void StartKilling();

  std::unique_ptr<ScopedEnvironment> environment_;  // null: opened as is
  std::unique_ptr<NetClient> net_;
  void* context_ = nullptr;
  bool initialised_ = false;

  std::mutex mutex_;                      // all below
  std::unique_ptr<KillerThread> killer_;  // null: nothing is killed
  std::set<void*> listens_;
  std::set<void*> sends_;
  std::set<void*> receives_;
};

// OK, or what the plugin answered to `call`, with its log.
absl::Status PluginStatus(ncclResult_t result, const std::string& call);

// Posts, trying again while the plugin has no room.
absl::StatusOr<void*> PostSend(NetClient* net, void* comm, const void* data, size_t bytes, int tag = 0);
absl::StatusOr<void*> PostReceive(NetClient* net, void* comm, void* data, size_t capacity, int tag = 0);
// Waits until `request` is done; *size may be null.
absl::Status WaitFor(NetClient* net, void* request, int* size = nullptr);
// Tests all in turn until all are done: each may need the others to go on.
absl::Status WaitForAll(NetClient* net, std::vector<void*> requests);
// One message between both ends of a connection, which arrives as it was.
absl::Status Move(NetClient* net, const Ends& ends, const std::string& text);

}  // namespace tcpx
