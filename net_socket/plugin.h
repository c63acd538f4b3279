// plugin.h: the transport behind NCCL's tables: contexts, devices, and who uses the threads.
//
// Purpose: the one implementation of PluginApi. Control calls (contexts, listen, connect, close) are serialized here
// and keep
//          count of users; calls that move messages go straight to their comm.
//
// Threads: as PluginApi.
// States:  no transport until the first listen or connect; retired when the last user has gone. Users are: a v11+
// context
//          that has listened or connected, and, of older versions, each listen comm, unfinished connect and comm.
// Errors:  as PluginApi.
#ifndef TCPX_NET_SOCKET_PLUGIN_H_
#define TCPX_NET_SOCKET_PLUGIN_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "common/params.h"
#include "nccl/plugin_api.h"
#include "net_socket/device.h"
#include "net_socket/transport.h"

namespace tcpx {

class Context {
 public:
  ContextOptions options;
  bool uses_transport = false;
  std::shared_ptr<FailureGroup> group;  // null: failures stay with their connection
  absl::flat_hash_set<ListenComm*> listens;
  absl::flat_hash_set<uint64_t> dials;  // keys of unfinished connects
  absl::flat_hash_set<Comm*> comms;

  // v11 and up: ends with finalize. Older: the process's, never ends.
  bool has_finalize() const { return options.api_version >= 11; }
};

class ListenComm {
 public:
  Context* context = nullptr;
  std::shared_ptr<Listening> listening;
  Acceptor* acceptor = nullptr;
};

class Plugin final : public PluginApi {
 public:
  explicit Plugin(std::string sysfs_root = "/sys") : sysfs_root_(std::move(sysfs_root)) {}
  ~Plugin() override;

  absl::StatusOr<Context*> CreateContext(const ContextOptions& options) override;
  absl::Status DestroyContext(Context* context) override;
  absl::StatusOr<int> DeviceCount() override;
  absl::StatusOr<DeviceProperties> GetProperties(int device) override;
  absl::StatusOr<int> MakeVirtualDevice(absl::Span<const int> children) override;
  absl::StatusOr<ListenComm*> Listen(Context* context, int device, void* handle) override;
  absl::StatusOr<Comm*> Connect(Context* context, int device, void* handle, const ConnectOptions& options) override;
  absl::StatusOr<Comm*> Accept(ListenComm* listen) override;
  absl::StatusOr<MemoryRegion*> RegisterMemory(Comm* comm, void* data, size_t bytes, MemoryType type) override;
  void DeregisterMemory(Comm* comm, MemoryRegion* region) override;
  absl::Status Send(Comm* comm, const SendArgs& args, Request** request) override;
  absl::Status Receive(Comm* comm, const ReceiveArgs& args, Request** request) override;
  absl::Status Flush(Comm* comm, const FlushArgs& args, Request** request) override;
  absl::Status Test(Request* request, bool* done, int* sizes) override;
  void CloseSend(Comm* comm) override;
  void CloseReceive(Comm* comm) override;
  void CloseListen(ListenComm* listen) override;
  void SetNetworkAttributes(Context* context, const NetworkAttributes& attributes) override;

  // The library is being unloaded, or the process exits: ends all threads, within TCPX_LINGER.
  void Unload();
  // True exactly when no comm is left: the object may be destroyed after Unload.
  bool Unused();
  // In the child after a fork: every later call is refused.
  void DisableInChild() { forked_.store(true, std::memory_order_relaxed); }

 private:
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  // An error in a forked child, and a line in the log with the first one.
  absl::Status Usable() const;
  absl::Status CheckDevice(int device);
  void LoadOnce();
  DeviceTable& Devices();
  // The transport, started if need be, with one more user: `context`'s or, before v11, the object's.
  absl::StatusOr<Transport*> Use(Context* context);
  void AddObjectUser(Context* context);
  void DropObjectUser(Context* context);
  void DropUser();
  void JoinRetired(bool wait);
  absl::StatusOr<uint64_t> StartDial(Context* context, int device, const void* handle, const ConnectOptions& options);
  int TrafficClass(const Context& context, const ConnectOptions& options) const;
  void CloseComm(Comm* comm);

  const std::string sysfs_root_;
  std::atomic<bool> forked_{false};
  mutable std::atomic<bool> told_of_fork_{false};

  std::mutex mutex_;  // all below; never on a message's way
  bool loaded_ = false;
  Options options_;
  std::unique_ptr<DeviceTable> devices_;
  absl::flat_hash_map<Context*, std::unique_ptr<Context>> contexts_;
  Context* legacy_context_ = nullptr;
  absl::flat_hash_map<ListenComm*, std::unique_ptr<ListenComm>> listens_;
  absl::flat_hash_map<Comm*, Context*> comms_;
  std::unique_ptr<Transport> transport_;
  std::vector<std::unique_ptr<Transport>> retired_;
  int users_ = 0;
  bool unloading_ = false;
};

// How many lanes to a peer: the parameters' number, else one on the same host and, across the network, lane 0 and one
// bulk lane per 10 Gbit/s of the device (about what one flow gets in public clouds), at most 8.
int LanesFor(const Options& options, int speed_mbps, bool same_host);

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PLUGIN_H_
