// Plugin's way from listen and connect to a comm.
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log.h"
#include "net_socket/comm/receive_comm.h"
#include "net_socket/comm/send_comm.h"
#include "net_socket/nic/lane_plan.h"
#include "net_socket/nic/path_profile.h"
#include "net_socket/plugin/plugin.h"

namespace tcpx {
namespace {

// Whoever waits for a peer of a failed communicator waits in vain.
absl::Status ContextStatus(const Context& context) {
  const FailureGroup* const group = context.communicator->group.get();
  const std::string cause = group == nullptr ? "" : group->cause();
  if (cause.empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("another connection of the communicator failed: ", cause));
}

// Where many connections come at once, which may be a surprise.
void LogShare(const DialRequest& request, const LaneCount& count, const PathProfile& path) {
  const PathProfile::Buffer& buffer = path.send_buffer;
  const bool smaller = !buffer.asked && buffer.bytes >= 0;
  if (!smaller && !count.shared) return;
  TCPX_INFO(
      "comm %x connect: NCCL announces %d connections at once: %d lanes, send buffers %s; TCPX_LANES and "
      "NCCL_SOCKET_SNDBUF change it",
      request.communicator->id, request.path.hint.connections(), request.lanes,
      smaller ? absl::StrCat("of ", buffer.bytes, " bytes") : "by the kernel");
}

}  // namespace

absl::StatusOr<ListenComm*> Plugin::Listen(Context* context, int device, void* handle) {
  absl::Status usable = Usable();
  if (!usable.ok()) return usable;
  std::lock_guard<std::mutex> lock(mutex_);
  absl::Status known = CheckDevice(device);
  if (!known.ok()) return Told(known);
  auto transport = Use(context);
  if (!transport.ok()) return Told(transport.status());
  Handle contents;
  auto ours = std::make_shared<Listening>();
  ours->communicator = context->communicator;
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
  const int value = asked == kNoTrafficClass ? options_.traffic_class : asked;
  if (value == kNoTrafficClass) return kNoTrafficClass;
  return ResolveTrafficClass(value, traffic_classes_);
}

absl::StatusOr<uint64_t> Plugin::StartDial(Context* context, int device, const void* handle,
                                           const ConnectOptions& options) {
  absl::Status known = CheckDevice(device);
  if (!known.ok()) return known;
  DialRequest request;
  if (const char* wrong = DecodeHandle(static_cast<const char*>(handle), &request.handle)) {
    return absl::InvalidArgumentError(absl::StrCat("connect: ", wrong));
  }
  request.path.traffic_class = context->communicator->traffic_class;
  if (options.traffic_class != kNoTrafficClass) {
    auto traffic_class = TrafficClass(options.traffic_class);
    if (!traffic_class.ok()) return traffic_class.status();
    request.path.traffic_class = *traffic_class;
  }
  auto transport = Use(context);
  if (!transport.ok()) return transport.status();
  request.device = &Devices().device(device);
  request.communicator = context->communicator;
  request.path.same_host = (*transport)->IsLocal(request.handle.address);
  request.path.hint = context->hint();
  const PathProfile path = MakePathProfile(options_, request.path);
  const LaneCount count = LanesFor(options_, path, request.device->nics, request.handle.nics, request.path.hint);
  request.lanes = count.lanes;
  LogShare(request, count, path);
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
  raw->RecordEvents();
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
  raw->RecordEvents();
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
