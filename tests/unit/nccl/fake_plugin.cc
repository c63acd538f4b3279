#include "tests/unit/nccl/fake_plugin.h"

#include <algorithm>
#include <memory>

namespace tcpx {
namespace {

std::unique_ptr<FakePlugin>& Slot() {
  static std::unique_ptr<FakePlugin> slot = std::make_unique<FakePlugin>();
  return slot;
}

}  // namespace

FakePlugin& Fake() { return *Slot(); }
void ResetFake() { Slot() = std::make_unique<FakePlugin>(); }
PluginApi& ThePlugin() { return Fake(); }

template <class T>
absl::StatusOr<T*> FakePlugin::Answer(T* object) {
  if (!status.ok()) return status;
  return ready ? object : nullptr;
}

absl::Status FakePlugin::Post(int count, MemoryRegion* const* given, Request** posted) {
  regions.clear();
  if (given != nullptr) regions.assign(given, given + count);
  if (status.ok()) *posted = ready ? &request : nullptr;
  return status;
}

absl::StatusOr<Context*> FakePlugin::CreateContext(const ContextOptions& options) {
  context_options = options;
  if (!status.ok()) return status;
  const bool exists = options.api_version <= 10 && !contexts.empty();
  if (!exists) contexts.push_back(std::make_unique<Context>());
  return contexts.back().get();
}

absl::Status FakePlugin::DestroyContext(Context* gone) {
  ++contexts_destroyed;
  contexts.erase(
      std::remove_if(contexts.begin(), contexts.end(), [gone](const auto& owned) { return owned.get() == gone; }),
      contexts.end());
  return status;
}

absl::StatusOr<int> FakePlugin::DeviceCount() {
  if (!status.ok()) return status;
  return device_count;
}

absl::StatusOr<DeviceProperties> FakePlugin::GetProperties(int index) {
  device = index;
  if (!status.ok()) return status;
  return properties;
}

absl::StatusOr<int> FakePlugin::MakeVirtualDevice(absl::Span<const int> wanted) {
  children.assign(wanted.begin(), wanted.end());
  if (!status.ok()) return status;
  return device_count;
}

absl::StatusOr<ListenComm*> FakePlugin::Listen(Context* on, int index, void* buffer) {
  context = on;
  device = index;
  handle = buffer;
  return Answer(&listen_comm);
}

absl::StatusOr<Comm*> FakePlugin::Connect(Context* on, int index, void* buffer, const ConnectOptions& options) {
  context = on;
  device = index;
  handle = buffer;
  connect_options = options;
  return Answer(&send_comm);
}

absl::StatusOr<Comm*> FakePlugin::Accept(ListenComm*) { return Answer(&receive_comm); }

absl::StatusOr<MemoryRegion*> FakePlugin::RegisterMemory(Comm*, void* start, size_t length, MemoryType type) {
  data = start;
  bytes = length;
  memory_type = type;
  return Answer(&region);
}

void FakePlugin::DeregisterMemory(Comm*, MemoryRegion* gone) { closed.push_back(gone); }

absl::Status FakePlugin::Send(Comm*, const SendArgs& args, Request** posted) {
  send_args = args;
  return Post(0, nullptr, posted);
}

absl::Status FakePlugin::Receive(Comm*, const ReceiveArgs& args, Request** posted) {
  receive_args = args;
  capacities.assign(args.bytes, args.bytes + args.count);
  return Post(args.count, args.regions, posted);
}

absl::Status FakePlugin::Flush(Comm*, const FlushArgs& args, Request** posted) {
  flush_args = args;
  return Post(args.count, args.regions, posted);
}

absl::Status FakePlugin::Test(Request*, bool* is_done, int* sizes) {
  *is_done = done;
  if (sizes != nullptr) sizes[0] = size;
  return status;
}

void FakePlugin::CloseComm(Comm* comm) { closed.push_back(comm); }
void FakePlugin::CloseListen(ListenComm* listen) { closed.push_back(listen); }

void FakePlugin::ReportMisuse(Comm*, absl::string_view text) { misuses.emplace_back(text); }

}  // namespace tcpx
