// pair.h: the real shared library, connected to itself.
//
// Purpose: opens the plugin as NCCL does, with an environment of its own, and makes connected pairs of comms. The
//          plugin reads its environment once after it is loaded, so each Loopback loads it anew and unloads it at its
//          end.
//
//   auto plugin = Loopback::Open({.threads = 2, .engine = "epoll", .lanes = 4});
//   auto pair = (*plugin)->Connect();
//   ... (*plugin)->net().Isend(pair->send, ...) ...
//
// Killed:  with TCPX_TEST_KILL_US=N in the environment the socket of a lane dies every N us (socket_killer.h), but not
//          while a connection is being made or closed here. TCPX_HEAL is set by whoever sets that.
// Sealed:  with TCPX_TEST_MUST_ENCRYPT in the environment Open fails where the plugin does not say that it encrypts.
//
// Threads: Open and the destructor by one thread while no other Loopback exists; Connect from any; net() as NetClient.
// Lifetime: the destructor closes every pair and listen comm that is still open, finalizes the context and unloads.
// Errors:  a Status with the plugin's result and its log. Every wait is bounded (deadline.h).
#ifndef TCPX_TESTS_SUPPORT_PAIR_H_
#define TCPX_TESTS_SUPPORT_PAIR_H_

#include <sys/socket.h>

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/client/net_client.h"

namespace tcpx {

class KillerThread;

inline constexpr char kPluginPath[] = "net_socket/libnccl-net-tcpx.so";

struct LoopbackSettings {
  int threads = 0;  // 0: the caller drives everything
  std::string engine = "epoll";
  int lanes = 1;
  int family = AF_INET;  // AF_INET6 needs own_network.h
  int version = 0;       // of the API; 0: the newest
  std::map<std::string, std::string> environment = {};
  ncclProfilerCallback_t profiler = nullptr;

  // "io_uring 2 threads 4 lanes IPv6 v12", with `separator` for the spaces.
  std::string Describe(char separator = ' ') const;
};

// True exactly when the io_uring engine works here; otherwise *reason says why not.
bool IoUringWorks(std::string* reason);

struct Pair {
  void* send = nullptr;
  void* receive = nullptr;
};

class Loopback {
 public:
  static absl::StatusOr<std::unique_ptr<Loopback>> Open(const LoopbackSettings& settings);
  ~Loopback();

  NetClient& net() { return *net_; }
  void* context() { return context_; }

  // A listen comm, and its handle for connect.
  absl::StatusOr<void*> Listen(char* handle);
  // Connects to `handle` and accepts from `listen`, both with bounded waits. `handle` itself is left as it is.
  absl::StatusOr<Pair> ConnectTo(void* listen, const char* handle);
  // The three of them.
  absl::StatusOr<Pair> Connect();

  absl::Status Close(const Pair& pair);
  absl::Status CloseListen(void* listen);
  // Closes what is open and finalizes; the destructor does the same and drops the result.
  absl::Status Finish();

 private:
  class Environment;

  explicit Loopback(const LoopbackSettings& settings);
  absl::Status Load(const LoopbackSettings& settings);

  std::unique_ptr<Environment> environment_;
  std::unique_ptr<NetClient> net_;
  void* context_ = nullptr;
  bool initialised_ = false;
  std::unique_ptr<KillerThread> killer_;  // null: nothing is killed

  std::mutex mutex_;
  std::set<void*> listens_;  // all three under mutex_
  std::set<void*> sends_;
  std::set<void*> receives_;
};

// OK, or what the plugin answered to `call`, with its log.
absl::Status PluginStatus(ncclResult_t result, const std::string& call);

// Waits, bounded, until `request` is done; *size may be null.
absl::Status WaitFor(NetClient* net, void* request, int* size = nullptr);
// Posts, trying again while the plugin has no room; bounded.
absl::StatusOr<void*> PostSend(NetClient* net, void* comm, const void* data, size_t bytes, int tag = 0);
absl::StatusOr<void*> PostReceive(NetClient* net, void* comm, void* data, size_t capacity, int tag = 0);

}  // namespace tcpx

#endif  // TCPX_TESTS_SUPPORT_PAIR_H_
