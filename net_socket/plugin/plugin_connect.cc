// Plugin's way from listen and connect to a comm.
#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/comm/send_comm.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/plugin/plugin.h"

namespace tcpx {
namespace {

// Whoever waits for a peer of a failed communicator waits in vain.
absl::Status ContextStatus(const Context& context) {
  const std::string cause = context.group == nullptr ? "" : context.group->cause();
  if (cause.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("another connection of the communicator failed: ", cause));
}

}  // namespace

absl::StatusOr<ListenComm*> Plugin::Listen(Context* context, int device, void* handle) {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  std::lock_guard<std::mutex> lock(mutex_);
  absl::Status known = CheckDevice(device);
  if (!known.ok()) return Told(known);
  auto transport = Use(context, device);
  if (!transport.ok()) return Told(transport.status());
  Handle contents;
  auto ours = std::make_shared<Listening>();
  ours->comm_id = context->options.comm_id;
  ours->log = context->options.log;
  ours->group = context->group;
  ours->repeat_warnings = !context->has_finalize();
  auto listening = (*transport)->acceptor().Listen(Devices().device(device), std::move(ours), &contents);
  if (!listening.ok()) {
    DropObjectUser(context);
    return Told(listening.status());
  }
  auto listen = std::make_unique<ListenComm>();
  listen->context = context;
  listen->listening = *listening;
  listen->acceptor = &(*transport)->acceptor();
  std::memset(handle, 0, kHandleBytes);
  EncodeHandle(contents, static_cast<char*>(handle));
  ListenComm* raw = listen.get();
  context->listens.insert(raw);
  listens_[raw] = std::move(listen);
  return raw;
}

absl::StatusOr<int> Plugin::TrafficClass(int asked) const {
  const int value = asked == kTrafficClassUndefined ? options_.traffic_class : asked;
  if (value == kTrafficClassUndefined) return kNoTrafficClass;
  return ResolveTrafficClass(value, traffic_classes_);
}

void Plugin::Share(const FlowHint& hint, DialRequest* request) const {
  const int alone = request->lanes;
  if (options_.lanes == 0) {
    const int links = std::max(static_cast<int>(request->device->nics.size()), static_cast<int>(request->handle.nics));
    request->lanes = ShareLanes(alone, links, hint);
  }
  if (options_.sndbuf < 0) request->sndbuf = ShareSendBuffers(hint);
  if (request->sndbuf < 0 && request->lanes == alone) return;
  TCPX_INFO(
      "comm %x connect: NCCL announces %d connections at once: %d lanes, send buffers %s; TCPX_LANES and "
      "NCCL_SOCKET_SNDBUF change it",
      request->comm_id, hint.connections(), request->lanes,
      request->sndbuf < 0 ? "by the kernel" : absl::StrCat("of ", request->sndbuf, " bytes"));
}

absl::StatusOr<uint64_t> Plugin::StartDial(Context* context, int device, const void* handle,
                                           const ConnectOptions& options) {
  absl::Status known = CheckDevice(device);
  if (!known.ok()) return known;
  DialRequest request;
  if (const char* wrong = DecodeHandle(static_cast<const char*>(handle), &request.handle)) {
    return absl::InvalidArgumentError(absl::StrCat("connect: ", wrong));
  }
  request.traffic_class = context->traffic_class;
  if (options.traffic_class != kTrafficClassUndefined) {
    auto traffic_class = TrafficClass(options.traffic_class);
    if (!traffic_class.ok()) return traffic_class.status();
    request.traffic_class = *traffic_class;
  }
  auto transport = Use(context, device);
  if (!transport.ok()) return transport.status();
  request.device = &Devices().device(device);
  request.comm_id = context->options.comm_id;
  request.log = context->options.log;
  request.same_host = (*transport)->IsLocal(request.handle.address);
  request.lanes = LanesFor(options_, request.device->nics, request.handle.nics, request.same_host);
  Share(context->hint(), &request);
  request.group = context->group;
  request.repeat_warnings = !context->has_finalize();
  auto key = (*transport)->dialler().Start(request);
  if (key.ok()) {
    context->dials.insert(*key);
  } else {
    DropObjectUser(context);
  }
  return key;
}

absl::StatusOr<Comm*> Plugin::Connect(Context* context, int device, void* handle, const ConnectOptions& options) {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  char* key_at = static_cast<char*>(handle) + kHandleKeyOffset;
  uint64_t key;
  std::memcpy(&key, key_at, sizeof(key));
  std::lock_guard<std::mutex> lock(mutex_);
  if (key == 0) {
    auto started = StartDial(context, device, handle, options);
    if (!started.ok()) return Told(started.status());
    std::memcpy(key_at, &*started, sizeof(uint64_t));
    return nullptr;
  }
  if (!context->dials.contains(key)) {
    return Told(absl::InvalidArgumentError(
        "connect: the handle was changed between two calls: pass the same buffer until it succeeds"));
  }
  auto comm = transport_->dialler().Take(key);
  if (comm.ok() && *comm == nullptr) {
    absl::Status failed = ContextStatus(*context);
    return failed.ok() ? absl::StatusOr<Comm*>(nullptr) : failed;
  }
  context->dials.erase(key);
  if (!comm.ok()) {
    DropObjectUser(context);
    return comm.status();
  }
  Comm* raw = comm->release();
  raw->RecordEvents(context->options.profiler, context->profiler_updates());
  comms_[raw] = context;  // Takes the dial's place as a user.
  context->Add(raw);
  return raw;
}

absl::StatusOr<Comm*> Plugin::Accept(ListenComm* listen) {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  std::unique_ptr<ReceiveComm> comm = Acceptor::Accept(listen->listening.get());
  if (comm == nullptr) {
    absl::Status failed = ContextStatus(*listen->context);
    return failed.ok() ? absl::StatusOr<Comm*>(nullptr) : failed;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  AddObjectUser(listen->context);
  Comm* raw = comm.release();
  raw->RecordEvents(listen->context->options.profiler, listen->context->profiler_updates());
  comms_[raw] = listen->context;
  listen->context->Add(raw);
  return raw;
}

void Plugin::CloseListen(ListenComm* listen) {
  if (listen == nullptr || forked()) return;
  std::unique_ptr<ListenComm> owned;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = listens_.find(listen);
    if (found == listens_.end()) return;
    owned = std::move(found->second);
    listens_.erase(found);
    owned->context->listens.erase(listen);
  }
  owned->acceptor->CloseListen(owned->listening);
  std::lock_guard<std::mutex> lock(mutex_);
  DropObjectUser(owned->context);
}

}  // namespace tcpx
