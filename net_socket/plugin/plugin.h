// plugin.h: the transport that NCCL's tables lead to: contexts, devices, and who uses the threads.
//
// Purpose: the one implementation of PluginApi. Control calls (contexts, listen, connect, close) are serialized here;
//          calls that move messages go straight to their comm.
// Threads: as PluginApi.
// States:  no transport until the first listen or connect; retired when the last user has gone (transport.h).
// Errors:  as PluginApi.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "nccl/plugin_api.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/plugin/announced_devices.h"
#include "net_socket/plugin/call_guard.h"
#include "net_socket/plugin/context.h"
#include "net_socket/plugin/settings.h"
#include "net_socket/rma/group.h"

namespace tcpx {

class StatsHub;

class Plugin final : public PluginApi {
 public:
  explicit Plugin(std::string sysfs_root = "/sys") : sysfs_root_(std::move(sysfs_root)) {}

  absl::StatusOr<Context*> CreateContext(const ContextOptions& options) override;
  absl::Status DestroyContext(Context* context) override;
  absl::StatusOr<int> DeviceCount() override;
  absl::StatusOr<DeviceProperties> GetProperties(int device) override;
  absl::StatusOr<int> MakeVirtualDevice(absl::Span<const int> children) override;
  absl::StatusOr<ListenComm*> Listen(Context* context, int device, void* handle) override;
  absl::StatusOr<Comm*> Connect(Context* context, int device, void* handle, const ConnectOptions& options) override;
  absl::StatusOr<Comm*> Accept(ListenComm* listen) override;
  absl::StatusOr<MemoryRegion*> RegisterMemory(Comm* comm, void* data, size_t bytes, MemoryType type) override;
  void DeregisterMemory(Comm* comm, MemoryRegion* region) override {
    if (!guard_.forked()) comm->DeregisterMemory(region);
  }
  absl::Status Send(Comm* comm, const SendArgs& args, Request** request) override;
  absl::Status Receive(Comm* comm, const ReceiveArgs& args, Request** request) override;
  absl::Status Flush(Comm* comm, const FlushArgs& args, Request** request) override;
  absl::Status Test(Request* request, bool* done, int* sizes) override;
  void CloseComm(Comm* comm) override;
  void CloseListen(ListenComm* listen) override;
  void Fail(Comm* comm, const absl::Status& status) override {
    if (!guard_.forked()) comm->FailFound(status);
  }
  void Adopt(Comm* comm) override {
    if (!guard_.forked()) comm->Adopt();
  }
  bool HasFailed(Comm* comm) override { return guard_.forked() || comm->failed(); }
  void ReportMisuse(Comm* comm, absl::string_view text) override {
    if (!guard_.forked()) comm->ReportMisuse(text);
  }

  // Nothing: no one-sided transfers here.
  std::optional<RmaLimits> OfferRma();

  // The library is being unloaded, or the process exits: ends all threads, within TCPX_LINGER. True: nobody uses it,
  // nothing is left of it, and later calls are refused. False: there are comms, or `has_groups` says that there are
  // groups of one-sided transfers: threads of the application may still be inside, and find all as it was.
  bool Unload(absl::FunctionRef<bool()> has_groups);
  // In the child after a fork: every later call is refused.
  void DisableInChild() { guard_.Disable(); }

 private:
  // Read with the first need of them.
  const Settings& settings() TCPX_REQUIRES(mutex_);
  AnnouncedDevices& devices() TCPX_REQUIRES(mutex_);
  // The transport runs, with one more user: `context`, or, before v11, the result's holder. If it starts, its threads
  // are planned for `device`.
  absl::StatusOr<TransportUse> Use(Context* context, int device) TCPX_REQUIRES(mutex_);
  absl::StatusOr<std::unique_ptr<Transport>> StartTransport(int device) TCPX_REQUIRES(mutex_);
  // The last steps of DestroyContext, which wait for what lingers; not where the context was aborted: then true.
  bool EndContext(Context* context);
  // What NCCL has announced changes the lanes and buffers of a dial where no parameter sets them.
  absl::StatusOr<uint64_t> StartDial(Context* context, int device, const void* handle, const ConnectOptions& options)
      TCPX_REQUIRES(mutex_);
  Comm* Enter(std::unique_ptr<Comm> comm, Context* context, TransportUse use) TCPX_REQUIRES(mutex_);
  // Nothing where it was closed before, or is none.
  void EndComm(Comm* comm);
  void EndListen(ListenComm* listen);

  const std::string sysfs_root_;
  CallGuard guard_;

  Mutex mutex_;  // never taken while a message is moved
  RmaCounts rma_counts_;
  // What the transports borrow, and what holds a TransportUse, are in the order of their lives.
  std::unique_ptr<Settings> settings_ TCPX_GUARDED_BY(mutex_);
  std::unique_ptr<AnnouncedDevices> devices_ TCPX_GUARDED_BY(mutex_);
  std::unique_ptr<LaneNotes> lane_notes_ TCPX_GUARDED_BY(mutex_);  // null: no transport has run
  std::shared_ptr<StatsHub> stats_ TCPX_GUARDED_BY(mutex_);        // null: nobody asks for statistics
  TransportUsers transport_users_ TCPX_GUARDED_BY(mutex_);
  ContextTable contexts_ TCPX_GUARDED_BY(mutex_);
  OpenObjects objects_ TCPX_GUARDED_BY(mutex_);
};

}  // namespace tcpx
