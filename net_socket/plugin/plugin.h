// plugin.h: the transport behind NCCL's tables: contexts, devices, and who uses the threads.
//
// Purpose: the one implementation of PluginApi. Control calls (contexts, listen, connect, close) are serialized here
//          and keep count of users; calls that move messages go straight to their comm.
//
// Threads: as PluginApi.
// States:  no transport until the first listen or connect; retired when the last user has gone. Users are: a v11+
//          context that has listened or connected, and, of older versions, each listen comm, unfinished connect and
//          comm.
// Errors:  as PluginApi.
#ifndef TCPX_NET_SOCKET_PLUGIN_PLUGIN_H_
#define TCPX_NET_SOCKET_PLUGIN_PLUGIN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/cpu_facts.h"
#include "common/params.h"
#include "common/traffic_class.h"
#include "nccl/plugin_api.h"
#include "net_socket/connect/secret.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/nic/device.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/plugin/context.h"
#include "net_socket/plugin/transport.h"

namespace tcpx {

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
  void ReportMisuse(Comm* comm, absl::string_view text) override;

  // The library is being unloaded, or the process exits: ends all threads, within TCPX_LINGER.
  void Unload();
  // What a living context's connections have moved so far.
  ContextStatistics Statistics(Context* context);
  // True exactly when no comm is left: the object may be destroyed after Unload.
  bool Unused();
  // In the child after a fork: every later call is refused.
  void DisableInChild() { forked_.store(true, std::memory_order_relaxed); }

 private:
  bool forked() const { return forked_.load(std::memory_order_relaxed); }
  // An error in a forked child, and a line in the log with the first one.
  absl::Status Usable() const;
  absl::Status CheckDevice(int device);
  // A context has ended: lines of no context go to a logger that is still in use.
  void ReplaceLogSink(LogSink gone);
  // Says a failure's cause: NCCL shows a result's name only.
  static absl::Status Told(absl::Status status);
  void LoadOnce();
  void LoadSecret();
  DeviceTable& Devices();
  // True exactly when GPU memory is announced.
  bool OpenGpuDriver();
  std::vector<int> NumaNodes() const;
  // What the process will use, as far as it is known when `device` is its first.
  CpuDemand Demand(int device) const;
  // The transport, started if need be, with one more user: `context`'s or, before v11, the object's.
  absl::StatusOr<Transport*> Use(Context* context, int device);
  void AddObjectUser(Context* context);
  void DropObjectUser(Context* context);
  void DropUser();
  void JoinRetired(bool wait);
  // What NCCL has announced changes the lanes and buffers of a dial where no parameter sets them.
  void Share(const FlowHint& hint, DialRequest* request) const;
  absl::StatusOr<uint64_t> StartDial(Context* context, int device, const void* handle, const ConnectOptions& options);
  static absl::Status ToldOfMisuse(Comm* comm, absl::Status status);
  // The octet for what the application asked for, or for the process's default.
  absl::StatusOr<int> TrafficClass(int asked) const;
  void CloseComm(Comm* comm);

  const std::string sysfs_root_;
  std::atomic<bool> forked_{false};
  mutable std::atomic<bool> told_of_fork_{false};

  std::mutex mutex_;  // all below; never on a message's way
  bool loaded_ = false;
  Options options_;
  CpuFacts cpu_facts_;  // of the time when NCCL has not bound its threads yet
  TrafficClassMap traffic_classes_;
  LaneNotes lane_notes_;
  std::unique_ptr<Secret> secret_;         // null: none is shared
  absl::Status secret_status_;             // of reading it
  std::unique_ptr<GpuDriver> gpu_driver_;  // null: host memory only
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

}  // namespace tcpx

#endif  // TCPX_NET_SOCKET_PLUGIN_PLUGIN_H_
