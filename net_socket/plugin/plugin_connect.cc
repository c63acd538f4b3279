// Plugin's way from listen and connect to a comm.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/this_host.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/comm/send_comm.h"
#include "net_socket/message/host_mark.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/lane_socket.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/plugin/plugin.h"
#include "net_socket/send/busy_lanes.h"

namespace tcpx {
namespace {

// Says a failure's cause: NCCL shows a result's name only.
absl::Status Told(absl::Status status) {
  TCPX_WARN("%s", std::string(status.message()));
  return status;
}

// Whoever waits for a peer of a failed communicator waits in vain.
absl::Status ContextStatus(const Context& context) {
  FailureGroup* const group = context.communicator->group.get();
  const std::string cause = group == nullptr ? "" : group->cause();
  if (cause.empty()) return absl::OkStatus();
  (void)group->Telling();  // Waits for the line of the log that names the cause: the process may exit on the error.
  return absl::UnavailableError(absl::StrCat("another connection of the communicator failed: ", cause));
}

// Where thousands of lanes are open, which may be a surprise.
void LogShare(const DialRequest& request, const LaneCount& count) {
  if (!count.shared) return;
  TCPX_INFO("comm %x connect: the process has most of its lanes open already: %d for this one; TCPX_LANES changes it",
            request.communicator->id, request.lanes);
}

// Where lanes come and go, with those that the latest connection to that peer has found.
void TakeLanes(const Options& options, const Runtime& runtime, DialRequest* request) {
  LaneBudget* const budget = runtime.lane_budget.get();
  const PathProfile path = MakePathProfile(options, request->path);
  LaneCount count = LanesFor(options, path, request->device->NicsFor(request->handle.address.family()),
                             request->handle.nics, budget->left());
  const int known = path.steers_lanes && options.heal && runtime.lane_notes != nullptr && !count.shared
                        ? runtime.lane_notes->KnownLanes(request->device->index, request->handle.address)
                        : 0;
  if (known > 0) {
    const int busy = runtime.busy_lanes->Count(MonotonicNanos());
    count.lanes = 1 + LaneBudget::Remembered(known, count.lanes - 1, budget->left(), busy);
  }
  request->lanes = count.lanes;
  const bool steers = path.steers_lanes || path.shuffles_lanes;
  request->steered = options.heal && steers && LanesMaySteer(count.lanes);
  request->taken_lanes = budget->Take(count.lanes - 1);
  LogShare(*request, count);
}

}  // namespace

absl::StatusOr<ListenComm*> Plugin::Listen(Context* context, int device, void* handle) {
  absl::Status usable = fork_guard_.Usable();
  if (!usable.ok()) return usable;
  MutexLock lock(mutex_);
  absl::Status known = devices().Check(device);
  if (!known.ok()) return Told(known);
  auto use = Use(context, device);
  if (!use.ok()) return Told(use.status());
  Acceptor& acceptor = transport_users_.transport()->acceptor();
  Handle contents;
  auto ours = std::make_shared<Listening>();
  ours->communicator = context->communicator;
  auto listening = acceptor.Listen(devices().device(device), std::move(ours), &contents);
  if (!listening.ok()) {
    Release(context, *std::move(use));
    return Told(listening.status());
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
  request.device = &devices().device(device);
  request.communicator = context->communicator;
  const uint64_t mark = ReadHostMark(static_cast<const char*>(handle));
  const bool elsewhere = mark != 0 && mark != HostMark();
  ChooseAddresses(
      *request.device, [&](const SocketAddress& at) { return elsewhere && transport->IsLocal(at); }, &request.handle);
  request.path.same_host = transport->IsLocal(request.handle.address);
  request.path.fused = request.device->fused();
  request.peer_is_elsewhere = request.path.same_host && elsewhere;
  TakeLanes(settings().options(), transport->runtime(), &request);
  auto key = transport->dialler().Start(request);
  if (key.ok()) {
    context->dials[*key] = *std::move(use);
  } else {
    Release(context, *std::move(use));
  }
  return key;
}

absl::StatusOr<Comm*> Plugin::Connect(Context* context, int device, void* handle, const ConnectOptions& options) {
  absl::Status usable = fork_guard_.Usable();
  if (!usable.ok()) return usable;
  char* key_at = static_cast<char*>(handle) + kHandleKeyOffset;
  uint64_t key;
  std::memcpy(&key, key_at, sizeof(key));
  MutexLock lock(mutex_);
  if (key == 0) {
    auto started = StartDial(context, device, handle, options);
    if (!started.ok()) return Told(started.status());
    std::memcpy(key_at, &*started, sizeof(uint64_t));
    return nullptr;
  }
  auto dial = context->dials.find(key);
  if (dial == context->dials.end()) {
    return Told(absl::InvalidArgumentError(
        "connect: the handle was changed between two calls: pass the same buffer until it succeeds"));
  }
  auto comm = transport_users_.transport()->dialler().Take(key);
  if (comm.ok() && *comm == nullptr) {
    absl::Status failed = ContextStatus(*context);
    return failed.ok() ? absl::StatusOr<Comm*>(nullptr) : failed;
  }
  TransportUse use = std::move(dial->second);
  context->dials.erase(dial);
  if (!comm.ok()) {
    Release(context, std::move(use));
    return comm.status();
  }
  return Enter(*std::move(comm), context, std::move(use));  // Takes the dial's place as a user.
}

absl::StatusOr<Comm*> Plugin::Accept(ListenComm* listen) {
  absl::Status usable = fork_guard_.Usable();
  if (!usable.ok()) return usable;
  auto comm = listen->acceptor->Accept(listen->listening);
  if (!comm.ok() || *comm == nullptr) {
    absl::Status failed = ContextStatus(*listen->context);
    if (failed.ok()) failed = comm.status();
    return failed.ok() ? absl::StatusOr<Comm*>(nullptr) : failed;
  }
  MutexLock lock(mutex_);
  return Enter(*std::move(comm), listen->context, listen->use.Another());
}

Comm* Plugin::Enter(std::unique_ptr<Comm> comm, Context* context, TransportUse use) {
  Comm* const raw = comm.release();  // Closed and freed by NCCL's close, or never.
  raw->RecordEvents();
  objects_.Add(raw, {context, std::move(use)});
  return raw;
}

void Plugin::CloseListen(ListenComm* listen) {
  if (listen == nullptr || fork_guard_.forked()) return;
  std::unique_ptr<ListenComm> owned;
  {
    MutexLock lock(mutex_);
    owned = objects_.Take(listen);
    if (owned == nullptr) return;
  }
  owned->acceptor->CloseListen(owned->listening);
  MutexLock lock(mutex_);
  Release(owned->context, std::move(owned->use));
}

}  // namespace tcpx
