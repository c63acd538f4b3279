#include "net_socket/plugin/plugin.h"

#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/cpu_plan.h"
#include "common/log.h"
#include "common/this_host.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/comm/send_comm.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/gpu/gpu_hub.h"
#include "net_socket/message/wire.h"
#include "net_socket/stats/hub.h"

namespace tcpx {
namespace {

// How long an abort may wait for its own threads. NCCL's Socket takes half a second to abort.
constexpr int64_t kSoonNs = 250 * kMillisecond;

// Where the comm has not failed, an error of its calls is about their arguments.
absl::Status LogMisuse(Comm* comm, absl::Status status) {
  if (!status.ok() && !comm->failed()) comm->ReportMisuse(status.message());
  return status;
}

// Says a failure's cause: NCCL shows a result's name only.
absl::Status Logged(absl::Status status) {
  TCPX_WARN("%s", status.message());
  return status;
}

}  // namespace

const Settings& Plugin::settings() {
  if (settings_ == nullptr) {
    settings_ = std::make_unique<Settings>();
    guard_.SetProtects(settings_->protects());
  }
  return *settings_;
}

AnnouncedDevices& Plugin::devices() {
  if (devices_ == nullptr) {
    devices_ = std::make_unique<AnnouncedDevices>(settings().options(), sysfs_root_, contexts_.ShowsReceiveHint());
  }
  return *devices_;
}

absl::StatusOr<Context*> Plugin::CreateContext(const ContextOptions& options) {
  const CallGuard::Pass pass(&guard_);
  if (guard_.shows_device()) return RefusedContext();
  if (!pass.ok()) return guard_.Refusal();
  MutexLock lock(mutex_);
  contexts_.OfferLog(options.log);
  if (options.api_version <= 10 && contexts_.legacy() != nullptr) {
    if (options.profiler != nullptr) contexts_.legacy()->communicator->profiler = options.profiler;
    return contexts_.legacy();
  }
  auto traffic_class = settings().TrafficClass(options.traffic_class);
  if (!traffic_class.ok() && !settings().protects()) return traffic_class.status();
  const int octet = traffic_class.value_or(kNoTrafficClass);
  auto context = std::make_unique<Context>(options, octet, settings().options().spread_errors);
  if (options.one_sided) contexts_.JoinGroup(context.get());
  context->logs_table = settings().options().stats;
  context->usable = settings().security().ok() ? traffic_class.status() : settings().security();
  return contexts_.Add(std::move(context));
}

absl::Status Plugin::DestroyContext(Context* context) {
  const CallGuard::Pass pass(&guard_);
  if (context == nullptr || !pass.ok()) return absl::OkStatus();
  std::vector<Comm*> comms;
  std::vector<ListenComm*> listens;
  {
    MutexLock lock(mutex_);
    if (!contexts_.contains(context)) return absl::OkStatus();
    comms.assign(context->comms().begin(), context->comms().end());
    listens.assign(context->listens.begin(), context->listens.end());
  }
  for (Comm* comm : comms) EndComm(comm);
  for (ListenComm* listen : listens) EndListen(listen);
  const bool aborted = EndContext(context);
  // Threads that have nothing left to do get the time to end, so that nothing of them is left. What lingers of other
  // connections is served in the background, until the library is unloaded.
  for (int64_t until = MonotonicNanos() + kSoonNs; aborted && MonotonicNanos() < until; usleep(500)) {
    MutexLock lock(mutex_);
    if (transport_users_.ForgetEnded()) break;
  }
  return absl::OkStatus();
}

bool Plugin::EndContext(Context* context) {
  std::vector<std::unique_ptr<Transport>> retired;  // Its end waits, and comes after the lock's.
  MutexLock lock(mutex_);
  for (auto& [key, use] : context->dials) transport_users_.transport()->dialler().Cancel(key);
  context->use.reset();
  context->LogStatistics();
  const bool aborted = context->communicator->aborted.load(std::memory_order_relaxed);
  contexts_.Remove(context);
  if (!aborted) retired = transport_users_.TakeRetired();
  return aborted;
}

absl::StatusOr<int> Plugin::DeviceCount() {
  const CallGuard::Pass pass(&guard_);
  if (guard_.shows_device()) return 1;
  if (!pass.ok()) return guard_.Refusal();
  MutexLock lock(mutex_);
  const int count = devices().table().count();
  return count == 0 && settings().protects() ? 1 : count;
}

absl::StatusOr<DeviceProperties> Plugin::GetProperties(int device) {
  const CallGuard::Pass pass(&guard_);
  if (device == 0 && guard_.shows_device()) return NoDevice();
  if (!pass.ok()) return guard_.Refusal();
  MutexLock lock(mutex_);
  if (device == 0 && devices().table().count() == 0 && settings().protects()) return NoDevice();
  absl::Status known = devices().Check(device);
  if (!known.ok()) return known;
  return devices().table().Properties(device);
}

absl::StatusOr<int> Plugin::MakeVirtualDevice(absl::Span<const int> children) {
  const CallGuard::Pass pass(&guard_);
  if (!pass.ok()) return guard_.Refusal();
  MutexLock lock(mutex_);
  auto made = devices().table().Fuse(children);
  // No warning: NCCL offers what it could merge without being asked to, and goes on.
  if (!made.ok()) TCPX_INFO("makeVDevice: %s", made.status().message());
  return made;
}

absl::StatusOr<std::unique_ptr<Transport>> Plugin::StartTransport(int device) {
  const Options& options = settings().options();
  CpuDemand demand;
  demand.gpus = contexts_.GpuCount();
  demand.device_nodes = devices().NumaNodes();
  demand.first_device = device;
  const GpuDriver* const driver = devices().gpu_driver();
  auto gpu = driver == nullptr ? nullptr : std::make_unique<GpuHub>(driver, options);
  if (lane_notes_ == nullptr) lane_notes_ = std::make_unique<LaneNotes>();
  auto transport = Transport::Start(options, PlanThreads(settings().cpu_facts(), demand, options), settings().secret(),
                                    lane_notes_.get(), std::move(gpu));
  const bool shows_stats = options.stats || !options.stats_dir.empty() || !options.stats_socket.empty();
  if (shows_stats && stats_ == nullptr) {
    stats_ = std::make_shared<StatsHub>(options, [this] { return rma_counts_.ReadRma(); });
  }
  if (transport.ok() && stats_ != nullptr) (*transport)->Serve(stats_.get());
  return transport;
}

absl::StatusOr<TransportUse> Plugin::Use(Context* context, int device) {
  if (!context->usable.ok()) return context->usable;
  auto use = transport_users_.Use([this, device]() TCPX_REQUIRES(mutex_) { return StartTransport(device); });
  if (!use.ok()) return use;
  GpuHub* const gpu = transport_users_.transport()->runtime().gpu.get();
  if (gpu != nullptr) gpu->SetNumaNodes(devices().NumaNodes());
  if (!context->has_finalize()) return use;
  if (context->use == nullptr) context->use = *std::move(use);
  return TransportUse();
}

absl::StatusOr<ListenComm*> Plugin::Listen(Context* context, int device, void* handle) {
  const CallGuard::Pass pass(&guard_);
  if (!pass.ok()) return guard_.Refusal();
  MutexLock lock(mutex_);
  absl::Status known = devices().Check(device);
  if (!known.ok()) return Logged(known);
  auto use = Use(context, device);
  if (!use.ok()) return Logged(use.status());
  Acceptor& acceptor = transport_users_.transport()->acceptor();
  Handle contents;
  auto ours = std::make_shared<Listening>();
  ours->communicator = context->communicator;
  auto listening = acceptor.Listen(devices().table().device(device), std::move(ours), &contents);
  if (!listening.ok()) {
    context->Release(*std::move(use));
    return Logged(listening.status());
  }
  auto listen = std::make_unique<ListenComm>();
  listen->context = context;
  listen->listening = *listening;
  listen->acceptor = &acceptor;
  listen->use = *std::move(use);
  std::memset(handle, 0, kHandleBytes);
  EncodeHandle(contents, static_cast<char*>(handle));
  WriteHostMark(HostMark(), static_cast<char*>(handle));
  return objects_.Add(std::move(listen));
}

absl::StatusOr<uint64_t> Plugin::StartDial(Context* context, int device, const void* handle,
                                           const ConnectOptions& options) {
  absl::Status known = devices().Check(device);
  if (!known.ok()) return known;
  DialRequest request;
  if (const char* wrong = DecodeHandle(static_cast<const char*>(handle), &request.handle)) {
    return absl::InvalidArgumentError(absl::StrCat("connect: ", wrong));
  }
  request.path.traffic_class = context->communicator->traffic_class;
  if (options.traffic_class != kNoTrafficClass) {
    auto traffic_class = settings().TrafficClass(options.traffic_class);
    if (!traffic_class.ok()) return traffic_class.status();
    request.path.traffic_class = *traffic_class;
  }
  auto use = Use(context, device);
  if (!use.ok()) return use.status();
  Transport* const transport = transport_users_.transport();
  request.device = &devices().table().device(device);
  request.communicator = context->communicator;
  transport->PlanDial(ReadHostMark(static_cast<const char*>(handle)), &request);
  auto key = transport->dialler().Start(request);
  if (key.ok()) {
    context->dials[*key] = *std::move(use);
  } else {
    context->Release(*std::move(use));
  }
  return key;
}

absl::StatusOr<Comm*> Plugin::Connect(Context* context, int device, void* handle, const ConnectOptions& options) {
  const CallGuard::Pass pass(&guard_);
  if (!pass.ok()) return guard_.Refusal();
  char* key_at = static_cast<char*>(handle) + kHandleKeyOffset;
  uint64_t key;
  std::memcpy(&key, key_at, sizeof(key));
  MutexLock lock(mutex_);
  if (key == 0) {
    auto started = StartDial(context, device, handle, options);
    if (!started.ok()) return Logged(started.status());
    std::memcpy(key_at, &*started, sizeof(uint64_t));
    return nullptr;
  }
  auto dial = context->dials.find(key);
  if (dial == context->dials.end()) {
    return Logged(absl::InvalidArgumentError(
        "connect: the handle was changed between two calls: pass the same buffer until it succeeds"));
  }
  auto comm = transport_users_.transport()->dialler().Take(key);
  if (comm.ok() && *comm == nullptr) {
    absl::Status failed = context->Failure();
    return failed.ok() ? absl::StatusOr<Comm*>(nullptr) : failed;
  }
  TransportUse use = std::move(dial->second);
  context->dials.erase(dial);
  if (!comm.ok()) {
    context->Release(std::move(use));
    return comm.status();
  }
  return Enter(*std::move(comm), context, std::move(use));  // Takes the dial's place as a user.
}

absl::StatusOr<Comm*> Plugin::Accept(ListenComm* listen) {
  const CallGuard::Pass pass(&guard_);
  if (!pass.ok()) return guard_.Refusal();
  auto comm = listen->acceptor->Accept(listen->listening);
  if (!comm.ok() || *comm == nullptr) {
    absl::Status failed = listen->context->Failure();
    if (failed.ok()) failed = comm.status();
    return failed.ok() ? absl::StatusOr<Comm*>(nullptr) : failed;
  }
  MutexLock lock(mutex_);
  return Enter(*std::move(comm), listen->context, listen->use);
}

Comm* Plugin::Enter(std::unique_ptr<Comm> comm, Context* context, TransportUse use) {
  Comm* const raw = comm.release();  // Closed and freed by NCCL's close, or never.
  raw->RecordEvents();
  objects_.Add(raw, {context, std::move(use)});
  return raw;
}

void Plugin::CloseListen(ListenComm* listen) {
  const CallGuard::Pass pass(&guard_);
  if (pass.ok()) EndListen(listen);
}

void Plugin::EndListen(ListenComm* listen) {
  std::unique_ptr<ListenComm> owned;
  {
    MutexLock lock(mutex_);
    owned = objects_.Take(listen);
    if (owned == nullptr) return;
  }
  owned->acceptor->CloseListen(owned->listening);
  MutexLock lock(mutex_);
  owned->context->Release(std::move(owned->use));
}

absl::StatusOr<MemoryRegion*> Plugin::RegisterMemory(Comm* comm, void* data, size_t bytes, MemoryType type) {
  if (guard_.forked()) return guard_.Refusal();
  auto region = comm->RegisterMemory(data, bytes, type);
  if (!region.ok()) comm->ReportMisuse(region.status().message());
  return region;
}

std::optional<RmaLimits> Plugin::OfferRma() {
  const CallGuard::Pass pass(&guard_);
  if (!pass.ok()) return std::nullopt;
  MutexLock lock(mutex_);
  const Options& options = settings().options();
  if (!options.rma) return std::nullopt;
  const auto driver = GpuDriver::Load();
  if (driver.ok() && !(*driver)->writes_words()) {
    TCPX_INFO("TCPX_RMA has no effect: the CUDA driver can't write signals (CUDA 11.7 or later can)");
    return std::nullopt;
  }
  RmaLimits limits{options.linger_ns, options.hello_timeout_ns, options.peer_timeout_ns, options.spread_errors,
                   &rma_counts_};
  Transport* const transport = transport_users_.transport();
  if (transport != nullptr) limits.gpu = transport->runtime().gpu.get();
  return limits;
}

absl::Status Plugin::Send(Comm* comm, const SendArgs& args, Request** request) {
  *request = nullptr;
  if (guard_.forked()) return guard_.Refusal();
  return LogMisuse(comm, static_cast<SendComm*>(comm)->Send(args, request));
}

absl::Status Plugin::Receive(Comm* comm, const ReceiveArgs& args, Request** request) {
  *request = nullptr;
  if (guard_.forked()) return guard_.Refusal();
  return LogMisuse(comm, static_cast<ReceiveComm*>(comm)->Receive(args, request));
}

// Host memory is visible as soon as test says done.
absl::Status Plugin::Flush(Comm*, const FlushArgs&, Request** request) {
  *request = nullptr;
  return absl::OkStatus();
}

absl::Status Plugin::Test(Request* request, bool* done, int* sizes) {
  *done = false;
  if (guard_.forked()) return guard_.Refusal();
  Comm* const comm = request->comm;  // The request may be another's after the call.
  return LogMisuse(comm, comm->Test(request, done, sizes));
}

void Plugin::EndComm(Comm* comm) {
  {
    MutexLock lock(mutex_);
    if (!objects_.contains(comm)) return;  // Closed before.
  }
  comm->Close();
  MutexLock lock(mutex_);
  OpenObjects::Owner owner = objects_.Remove(comm);
  owner.context->Release(std::move(owner.use));
}

void Plugin::CloseComm(Comm* comm) {
  const CallGuard::Pass pass(&guard_);
  if (pass.ok()) EndComm(comm);
}

bool Plugin::Unload(absl::FunctionRef<bool()> has_groups) {
  if (guard_.forked()) return false;
  const auto unused = [&] {
    if (has_groups()) return false;
    MutexLock lock(mutex_);
    return objects_.no_comms();
  };
  // Asked again: a call that was inside may have made one.
  const bool over = unused() && guard_.End(kSoonNs) && unused();
  if (!over) guard_.Reopen();
  MutexLock lock(mutex_);
  if (over && transport_users_.transport() != nullptr) objects_.CloseListens();
  transport_users_.End(!over);
  if (!over) return false;
  objects_ = OpenObjects();
  contexts_ = ContextTable();
  stats_.reset();
  lane_notes_.reset();
  devices_.reset();
  settings_.reset();
  return true;
}

}  // namespace tcpx
