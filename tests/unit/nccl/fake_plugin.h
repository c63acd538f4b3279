// fake_plugin.h: a plugin for the tables to talk to: remembers what it was given, answers what a test sets.
//
// Purpose: defines tcpx::ThePlugin and the classes that plugin_api.h leaves opaque.
// Threads: none; a test sets, calls and reads from one thread.
// Errors:  every call that can fail returns `status`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "nccl/plugin_api.h"

namespace tcpx {

class Context {};
class ListenComm {};
class Comm {};
class Request {};
class MemoryRegion {};

class FakePlugin : public PluginApi {
 public:
  // What a test sets.
  absl::Status status;
  bool ready = true;  // false: "not yet", a null object
  bool done = true;   // what Test says
  int size = 0;       // what Test writes to sizes[0], if there is one
  int device_count = 1;
  DeviceProperties properties;

  // What it gives out.
  ListenComm listen_comm;
  Comm send_comm;
  Comm receive_comm;
  Request request;
  MemoryRegion region;
  std::vector<std::unique_ptr<Context>> contexts;  // alive, oldest first

  // What it was given last.
  ContextOptions context_options;
  int contexts_destroyed = 0;
  std::vector<int> children;
  Context* context = nullptr;  // of Listen, Connect
  int device = -1;
  void* handle = nullptr;
  ConnectOptions connect_options;
  void* data = nullptr;
  size_t bytes = 0;
  MemoryType memory_type = MemoryType::kHost;
  SendArgs send_args;
  ReceiveArgs receive_args;  // its arrays: valid only during the call
  std::vector<size_t> capacities;
  std::vector<MemoryRegion*> regions;
  FlushArgs flush_args;
  std::vector<const void*> closed;  // comms and regions, in order
  std::vector<const Comm*> adopted;
  std::vector<std::string> misuses;

  absl::StatusOr<Context*> CreateContext(const ContextOptions& options) override;
  absl::Status DestroyContext(Context* gone) override;
  absl::StatusOr<int> DeviceCount() override;
  absl::StatusOr<DeviceProperties> GetProperties(int index) override;
  absl::StatusOr<int> MakeVirtualDevice(absl::Span<const int> wanted) override;
  absl::StatusOr<ListenComm*> Listen(Context* on, int index, void* buffer) override;
  absl::StatusOr<Comm*> Connect(Context* on, int index, void* buffer, const ConnectOptions& options) override;
  absl::StatusOr<Comm*> Accept(ListenComm* listen) override;
  absl::StatusOr<MemoryRegion*> RegisterMemory(Comm* comm, void* start, size_t length, MemoryType type) override;
  void DeregisterMemory(Comm* comm, MemoryRegion* gone) override;
  absl::Status Send(Comm* comm, const SendArgs& args, Request** posted) override;
  absl::Status Receive(Comm* comm, const ReceiveArgs& args, Request** posted) override;
  absl::Status Flush(Comm* comm, const FlushArgs& args, Request** posted) override;
  absl::Status Test(Request* posted, bool* is_done, int* sizes) override;
  void CloseComm(Comm* comm) override;
  void CloseListen(ListenComm* listen) override;
  void Fail(Comm*, const absl::Status&) override {}
  void Adopt(Comm* comm) override { adopted.push_back(comm); }
  bool HasFailed(Comm*) override { return false; }
  void ReportMisuse(Comm* comm, absl::string_view text) override;

 private:
  template <class T>
  absl::StatusOr<T*> Answer(T* object);
  absl::Status Post(int count, MemoryRegion* const* given, Request** posted);
};

// What ThePlugin returns. ResetFake gives it back its initial values.
FakePlugin& Fake();
void ResetFake();

}  // namespace tcpx
