#include "net_socket/plugin/plugin.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/log.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/comm/send_comm.h"

namespace tcpx {

Plugin::~Plugin() = default;

absl::Status Plugin::Told(absl::Status status) {
  TCPX_WARN("%s", std::string(status.message()));
  return status;
}

absl::Status Plugin::Usable() const {
  if (!forked()) return absl::OkStatus();
  const absl::Status refusal = absl::UnknownError(
      "tcpx can't be used in a forked child: start the process anew (exec, or the spawn start method)");
  return told_of_fork_.exchange(true) ? refusal : Told(refusal);
}

void Plugin::LoadOnce() {
  if (loaded_) return;
  loaded_ = true;
  std::vector<std::string> warnings;
  options_ = LoadOptions(nullptr, &warnings);
  cpu_facts_ = ReadCpuFacts();
  for (const std::string& warning : warnings) TCPX_WARN("%s", warning);
  LoadSecret();
  traffic_classes_ = ParseTrafficClassMap(options_.traffic_class_map).value_or(TrafficClassMap());
  if (options_.socket_inline >= 0) {
    TCPX_INFO("NCCL_SOCKET_INLINE: every message up to TCPX_EXPRESS_BYTES (%d) is inline here", options_.express_bytes);
  }
}

void Plugin::LoadSecret() {
  if (options_.secret_file.empty()) return;
  std::string warning;
  auto secret = Secret::Load(options_.secret_file, &warning);
  if (!warning.empty()) TCPX_WARN("%s", warning);
  secret_status_ = secret.status();
  if (!secret.ok()) return;
  secret_ = *std::move(secret);
  TCPX_INFO("TCPX_SECRET_FILE %s: every peer has to prove the secret that it holds", options_.secret_file);
}

DeviceTable& Plugin::Devices() {
  LoadOnce();
  if (devices_ == nullptr) {
    devices_ = std::make_unique<DeviceTable>(DeviceTable::Find(options_, sysfs_root_, OpenGpuDriver()));
  }
  return *devices_;
}

absl::StatusOr<Context*> Plugin::CreateContext(const ContextOptions& options) {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  std::lock_guard<std::mutex> lock(mutex_);
  // For lines of no context. A null one does not replace what other contexts were given.
  if (options.log != nullptr || contexts_.empty()) SetLogSink(options.log);
  LoadOnce();
  if (!secret_status_.ok()) return secret_status_;
  if (options.api_version <= 10 && legacy_context_ != nullptr) {
    if (options.profiler != nullptr) legacy_context_->options.profiler = options.profiler;
    return legacy_context_;
  }
  auto traffic_class = TrafficClass(options.traffic_class);
  if (!traffic_class.ok()) return traffic_class.status();
  auto context = std::make_unique<Context>(options, *traffic_class);
  // Before v11 a context is the process's: it can't fail with one of its communicators.
  if (context->has_finalize() && options_.spread_errors) context->group = std::make_shared<FailureGroup>();
  Context* raw = context.get();
  contexts_[raw] = std::move(context);
  if (!raw->has_finalize()) legacy_context_ = raw;
  return raw;
}

absl::Status Plugin::DestroyContext(Context* context) {
  if (context == nullptr || forked()) return absl::OkStatus();
  std::unique_lock<std::mutex> lock(mutex_);
  if (contexts_.find(context) == contexts_.end()) return absl::OkStatus();
  const std::vector<Comm*> comms(context->comms().begin(), context->comms().end());
  const std::vector<ListenComm*> listens(context->listens.begin(), context->listens.end());
  lock.unlock();
  for (Comm* comm : comms) CloseComm(comm);
  for (ListenComm* listen : listens) CloseListen(listen);
  lock.lock();
  for (uint64_t key : context->dials) transport_->dialler().Cancel(key);
  if (context->uses_transport) DropUser();
  context->LogStatistics();
  const LogSink log = context->options.log;
  contexts_.erase(context);
  ReplaceLogSink(log);
  JoinRetired(true);
  return absl::OkStatus();
}

void Plugin::ReplaceLogSink(LogSink gone) {
  LogSink another = nullptr;
  for (auto& [raw, context] : contexts_) {
    if (context->options.log == gone) return;
    if (context->options.log != nullptr) another = context->options.log;
  }
  if (another != nullptr) SetLogSink(another);
}

absl::StatusOr<int> Plugin::DeviceCount() {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  std::lock_guard<std::mutex> lock(mutex_);
  return Devices().count();
}

absl::Status Plugin::CheckDevice(int device) {
  if (device >= 0 && device < Devices().count()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("device %d: there are %d devices", device, Devices().count()));
}

absl::StatusOr<DeviceProperties> Plugin::GetProperties(int device) {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  std::lock_guard<std::mutex> lock(mutex_);
  absl::Status known = CheckDevice(device);
  if (!known.ok()) return known;
  return Devices().Properties(device);
}

absl::StatusOr<int> Plugin::MakeVirtualDevice(absl::Span<const int> children) {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  std::lock_guard<std::mutex> lock(mutex_);
  auto made = Devices().Fuse(children);
  // No warning: NCCL offers what it could merge without being asked to, and goes on.
  if (!made.ok()) TCPX_INFO("makeVDevice: %s", std::string(made.status().message()));
  return made;
}

// A GPU is only once in a communicator: contexts of the same one are as many GPUs. NCCL makes all of them before the
// first connects.
CpuDemand Plugin::Demand(int device) const {
  CpuDemand demand;
  absl::flat_hash_map<uint64_t, int> contexts;
  for (const auto& [raw, context] : contexts_) {
    if (raw->has_finalize()) demand.gpus = std::max(demand.gpus, ++contexts[raw->options.comm_id]);
  }
  demand.device_nodes = NumaNodes();
  demand.first_device = device;
  return demand;
}

absl::StatusOr<Transport*> Plugin::Use(Context* context, int device) {
  if (unloading_) return absl::UnknownError("tcpx is being unloaded");
  if (transport_ == nullptr) {
    JoinRetired(false);
    auto transport = Transport::Start(options_, PlanThreads(cpu_facts_, Demand(device), options_));
    if (!transport.ok()) return transport.status();
    transport_ = *std::move(transport);
    transport_->runtime().lane_notes = &lane_notes_;
    transport_->runtime().secret = secret_.get();
    if (gpu_driver_ != nullptr) {
      transport_->runtime().gpu = std::make_unique<GpuHub>(gpu_driver_.get(), options_);
    }
  }
  if (transport_->runtime().gpu != nullptr) transport_->runtime().gpu->SetNumaNodes(NumaNodes());
  if (!context->has_finalize()) {
    ++users_;
  } else if (!context->uses_transport) {
    context->uses_transport = true;
    ++users_;
  }
  return transport_.get();
}

void Plugin::AddObjectUser(Context* context) {
  if (!context->has_finalize()) ++users_;
}

void Plugin::DropObjectUser(Context* context) {
  if (context->has_finalize()) return;
  if (users_ == 1) context->LogStatistics();  // It never ends, but here nothing of it is left.
  DropUser();
}

void Plugin::DropUser() {
  if (--users_ > 0) return;
  transport_->Retire();
  retired_.push_back(std::move(transport_));
}

void Plugin::JoinRetired(bool wait) {
  for (auto it = retired_.begin(); it != retired_.end();) {
    it = wait || (*it)->runtime().reactor.ended() ? retired_.erase(it) : it + 1;
  }
}

absl::StatusOr<MemoryRegion*> Plugin::RegisterMemory(Comm* comm, void* data, size_t bytes, MemoryType type) {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  auto region = comm->RegisterMemory(data, bytes, type);
  if (!region.ok()) comm->ReportMisuse(region.status().message());
  return region;
}

void Plugin::DeregisterMemory(Comm* comm, MemoryRegion* region) {
  if (!forked()) comm->DeregisterMemory(region);
}

// Where the comm has not failed, an error of its calls is about their arguments.
absl::Status Plugin::ToldOfMisuse(Comm* comm, absl::Status status) {
  if (!status.ok() && !comm->failed()) comm->ReportMisuse(status.message());
  return status;
}

void Plugin::ReportMisuse(Comm* comm, absl::string_view text) {
  if (!forked()) comm->ReportMisuse(text);
}

absl::Status Plugin::Send(Comm* comm, const SendArgs& args, Request** request) {
  *request = nullptr;
  absl::Status usable = Usable();
  return usable.ok() ? ToldOfMisuse(comm, static_cast<SendComm*>(comm)->Send(args, request)) : usable;
}

absl::Status Plugin::Receive(Comm* comm, const ReceiveArgs& args, Request** request) {
  *request = nullptr;
  absl::Status usable = Usable();
  return usable.ok() ? ToldOfMisuse(comm, static_cast<ReceiveComm*>(comm)->Receive(args, request)) : usable;
}

// Host memory is visible as soon as test says done.
absl::Status Plugin::Flush(Comm*, const FlushArgs&, Request** request) {
  *request = nullptr;
  return absl::OkStatus();
}

absl::Status Plugin::Test(Request* request, bool* done, int* sizes) {
  *done = false;
  absl::Status usable = Usable();
  return usable.ok() ? ToldOfMisuse(request->comm, request->comm->Test(request, done, sizes)) : usable;
}

void Plugin::CloseComm(Comm* comm) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!comms_.contains(comm)) return;  // Closed before.
  }
  comm->Close();
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = comms_.find(comm);
  Context* context = found->second;
  comms_.erase(found);
  context->Remove(comm);
  delete comm;  // Behind the look-up: a comm that another thread enters now may get the same address.
  DropObjectUser(context);
}

void Plugin::CloseSend(Comm* comm) {
  if (comm != nullptr && !forked()) CloseComm(comm);
}

void Plugin::CloseReceive(Comm* comm) { CloseSend(comm); }

ContextStatistics Plugin::Statistics(Context* context) {
  std::lock_guard<std::mutex> lock(mutex_);
  return context->Statistics();
}

// NCCL's progress thread calls it too: no lock.
void Plugin::SetNetworkAttributes(Context* context, const NetworkAttributes& attributes) {
  context->peers.store(attributes.send.max_concurrent_peers, std::memory_order_relaxed);
  context->flows_per_peer.store(attributes.send.max_flows_per_peer, std::memory_order_relaxed);
}

void Plugin::Unload() {
  if (forked()) return;
  std::lock_guard<std::mutex> lock(mutex_);
  unloading_ = true;
  if (transport_ != nullptr && comms_.empty()) {
    for (auto& [listen, owned] : listens_) owned->acceptor->CloseListen(owned->listening);
    transport_->Retire();
    retired_.push_back(std::move(transport_));
  } else if (transport_ != nullptr) {
    transport_->Abandon();
    (void)transport_.release();  // Its comms still point to it.
  }
  JoinRetired(true);
}

bool Plugin::Unused() {
  if (forked()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  return comms_.empty();
}

}  // namespace tcpx
