#include "nccl/shims.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "nccl/plugin_api.h"
#include "nccl/shim_common.h"

namespace tcpx::shim {
namespace {

// No object is larger, and every negative int is when it is cast to size_t.
constexpr size_t kMostBytes = PTRDIFF_MAX;

// The context of the last init of v6 to v10; null before the first one and after one that could not make it.
std::atomic<Context*> g_legacy_context{nullptr};

Context* LegacyContext() { return g_legacy_context.load(std::memory_order_acquire); }

ncclResult_t DeliverRequest(const absl::Status& status, Request* request, void** out) {
  if (status.ok()) *out = request;
  return ResultFromStatus(status);
}

bool IsBuffer(const void* data, size_t size) { return size <= kMostBytes && (data != nullptr || size == 0); }

bool IsGroup(int n) { return n >= 1 && n <= kReceivesMax; }

bool IsMemoryType(int type) { return type == NCCL_PTR_HOST || type == NCCL_PTR_CUDA || type == NCCL_PTR_DMABUF; }

// Zero would fail every connection and means that the transport has no limit.
size_t ClipToNccl(size_t limit) {
  const size_t most = NCCL_MAX_NET_SIZE_BYTES;
  return limit == 0 ? most : std::min(limit, most);
}

// The memory handles of a group, as what they are: `to`, or null where none were given.
MemoryRegion* const* RegionsOf(void* const* mhandles, int n, MemoryRegion** to) {
  if (mhandles == nullptr) return nullptr;
  for (int i = 0; i < n; ++i) to[i] = static_cast<MemoryRegion*>(mhandles[i]);
  return to;
}

template <class Size>
bool AreBuffers(void* const* data, const Size* sizes, int n) {
  if (!IsGroup(n) || data == nullptr || sizes == nullptr) return false;
  for (int i = 0; i < n; ++i) {
    if (!IsBuffer(data[i], static_cast<size_t>(sizes[i]))) return false;
  }
  return true;
}

// NCCL repeats a refused call, and shows only the result's name.
ncclResult_t Refuse(void* comm, const std::string& text) {
  ThePlugin().ReportMisuse(static_cast<Comm*>(comm), text);
  return ncclInvalidArgument;
}

ncclResult_t RefuseReceive(void* comm, const ReceiveArgs& args) {
  if (!IsGroup(args.count)) {
    return Refuse(comm, absl::StrFormat("irecv: %d buffers: pass 1 to maxRecvs of them", args.count));
  }
  if (args.data == nullptr || args.bytes == nullptr || args.tags == nullptr) {
    return Refuse(comm, "irecv: an array is missing: pass data, sizes and tags, one entry per buffer");
  }
  return Refuse(comm, "irecv: a buffer is null or its size negative: pass buffers of at least their sizes");
}

// In the order of the tables. A table's entry takes the overload that has its version's signature; a remark says with
// which version that came.

// Always succeeds: NCCL 2.28.3 to 2.29.3 crash when an init of v6 to v10 fails. LegacyDevices tells instead.
ncclResult_t InitLegacy(const ContextOptions& options, ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
  const absl::StatusOr<Context*> context = CreateContext(options, log, profiler);
  g_legacy_context.store(context.ok() ? *context : nullptr, std::memory_order_release);
  return ncclSuccess;
}

// v6
template <int kVersion>
ncclResult_t Init(ncclDebugLogger_t log) {
  return InitLegacy({kVersion}, log, nullptr);
}

// v10
template <int kVersion>
ncclResult_t Init(ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
  return InitLegacy({kVersion}, log, profiler);
}

// The config is valid during the call only.
int TrafficClassOf(const ncclNetCommConfig_v10_t* config) {
  return config == nullptr ? NCCL_NET_TRAFFIC_CLASS_UNDEF : config->trafficClass;
}

// v11
template <int kVersion>
ncclResult_t Init(void** ctx, uint64_t comm_id, ncclNetCommConfig_v11_t* config, ncclDebugLogger_t log,
                  ncclProfilerCallback_t profiler) {
  if (!Clear(ctx)) return ncclInvalidArgument;
  return Deliver(CreateContext({kVersion, comm_id, TrafficClassOf(config)}, log, profiler), ctx);
}

// Zero devices while there is no LegacyContext.
ncclResult_t LegacyDevices(int* count) {
  if (LegacyContext() != nullptr || count == nullptr) return Devices(count);
  *count = 0;
  return ncclSuccess;
}

// Limits are in NCCL's range, and a device has children. regIsGlobal and forceFlush stay 0.
template <int kVersion, class Props>
ncclResult_t GetProperties(int dev, Props* to) {
  if (to == nullptr) return ncclInvalidArgument;
  std::memset(to, 0, sizeof(*to));
  absl::StatusOr<DeviceProperties> from = ThePlugin().GetProperties(dev);
  if (!from.ok()) return ResultFromStatus(from.status());
  to->name = const_cast<char*>(from->name);
  to->pciPath = const_cast<char*>(from->pci_path);
  to->guid = from->guid;
  to->ptrSupport = from->pointer_support;
  to->speed = from->speed_mbps;
  to->port = from->port;
  to->latency = from->latency_us;
  to->maxComms = from->max_comms;
  to->maxRecvs = from->max_receives;
  if constexpr (kVersion >= 7) {
    to->netDeviceType = NCCL_NET_DEVICE_HOST;
    to->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
  }
  if constexpr (kVersion >= 9) {
    if (from->children.empty()) from->children = {dev};
    // More children than the version can name are left out.
    to->vProps.ndevs = static_cast<int>(std::min(from->children.size(), std::size(to->vProps.devs)));
    std::copy_n(from->children.begin(), to->vProps.ndevs, to->vProps.devs);
    to->maxP2pBytes = ClipToNccl(from->max_p2p_bytes);
    to->maxCollBytes = ClipToNccl(from->max_collective_bytes);
  }
  if constexpr (kVersion >= 11) to->maxMultiRequestSize = 1;
  if constexpr (kVersion >= 12) to->railId = to->planeId = NCCL_NET_ID_UNDEF;
  return ncclSuccess;
}

// v11
ncclResult_t Listen(void* ctx, int dev, void* handle, void** listen_comm) {
  if (!Clear(listen_comm) || ctx == nullptr || handle == nullptr) return ncclInvalidArgument;
  return Deliver(ThePlugin().Listen(static_cast<Context*>(ctx), dev, handle), listen_comm);
}

// v6
ncclResult_t Listen(int dev, void* handle, void** listen_comm) {
  return Listen(LegacyContext(), dev, handle, listen_comm);
}

// What all versions do.
ncclResult_t Connect(void* ctx, int dev, void* handle, int traffic_class, void** send_comm) {
  if (!Clear(send_comm) || ctx == nullptr || handle == nullptr) return ncclInvalidArgument;
  const ConnectOptions options{TrafficClass(traffic_class)};
  return Deliver(ThePlugin().Connect(static_cast<Context*>(ctx), dev, handle, options), send_comm);
}

// v6
ncclResult_t Connect(int dev, void* handle, void** send_comm) {
  return Connect(LegacyContext(), dev, handle, NCCL_NET_TRAFFIC_CLASS_UNDEF, send_comm);
}

// v7. The device handles of this and the next ones are for devices that a GPU drives; a host device must not write
// them.
ncclResult_t Connect(int dev, void* handle, void** send_comm, ncclNetDeviceHandle_v7_t** /*send_dev_comm*/) {
  return Connect(dev, handle, send_comm);
}

// v10
ncclResult_t Connect(int dev, ncclNetCommConfig_v10_t* config, void* handle, void** send_comm,
                     ncclNetDeviceHandle_v10_t** /*send_dev_comm*/) {
  return Connect(LegacyContext(), dev, handle, TrafficClassOf(config), send_comm);
}

// v11
ncclResult_t Connect(void* ctx, int dev, void* handle, void** send_comm,
                     ncclNetDeviceHandle_v11_t** /*send_dev_comm*/) {
  return Connect(ctx, dev, handle, NCCL_NET_TRAFFIC_CLASS_UNDEF, send_comm);
}

// v6
ncclResult_t Accept(void* listen_comm, void** recv_comm) {
  if (!Clear(recv_comm) || listen_comm == nullptr) return ncclInvalidArgument;
  return Deliver(ThePlugin().Accept(static_cast<ListenComm*>(listen_comm)), recv_comm);
}

// v7
ncclResult_t Accept(void* listen_comm, void** recv_comm, ncclNetDeviceHandle_v7_t** /*recv_dev_comm*/) {
  return Accept(listen_comm, recv_comm);
}

// v6, and v8 with size_t
template <class Size>
ncclResult_t RegMr(void* comm, void* data, Size size, int type, void** mhandle) {
  const auto bytes = static_cast<size_t>(size);
  if (!Clear(mhandle) || comm == nullptr || !IsBuffer(data, bytes) || !IsMemoryType(type)) return ncclInvalidArgument;
  return Deliver(ThePlugin().RegisterMemory(static_cast<Comm*>(comm), data, bytes, static_cast<MemoryType>(type)),
                 mhandle);
}

// An error here or from a close would keep NCCL from releasing everything that is left (2.12 to 2.30).
ncclResult_t DeregMr(void* comm, void* mhandle) {
  if (comm != nullptr && mhandle != nullptr) {
    ThePlugin().DeregisterMemory(static_cast<Comm*>(comm), static_cast<MemoryRegion*>(mhandle));
  }
  return ncclSuccess;
}

// v10
ncclResult_t Isend(void* comm, void* data, size_t size, int tag, void* mhandle, void* phandle, void** request) {
  if (!Clear(request) || comm == nullptr) return ncclInvalidArgument;
  if (!IsBuffer(data, size)) {
    return Refuse(comm, "isend: the buffer is null or its size negative: pass a buffer of at least its size");
  }
  const SendArgs args{data, size, tag, static_cast<MemoryRegion*>(mhandle), phandle};
  Request* posted = nullptr;
  const absl::Status status = ThePlugin().Send(static_cast<Comm*>(comm), args, &posted);
  return DeliverRequest(status, posted, request);
}

// v6, and v9 with size_t
template <class Size>
ncclResult_t Isend(void* comm, void* data, Size size, int tag, void* mhandle, void** request) {
  return Isend(comm, data, static_cast<size_t>(size), tag, mhandle, nullptr, request);
}

// What all versions do. Where `reads_request` (v9 and up) *request may hold NCCL_NET_OPTIONAL_RECV_COMPLETION on entry.
ncclResult_t Receive(void* comm, ReceiveArgs args, void** mhandles, bool reads_request, void** request) {
  // Compared, never dereferenced: unless it is the preset, it is left over from an earlier use of the slot.
  const bool preset = request != nullptr && reinterpret_cast<intptr_t>(*request) == NCCL_NET_OPTIONAL_RECV_COMPLETION;
  if (!Clear(request) || comm == nullptr) return ncclInvalidArgument;
  if (args.tags == nullptr || !AreBuffers(args.data, args.bytes, args.count)) return RefuseReceive(comm, args);
  MemoryRegion* regions[kReceivesMax];
  args.regions = RegionsOf(mhandles, args.count, regions);
  args.knows_hint = reads_request;
  args.optional_completion = reads_request && preset && args.count == 1;
  Request* posted = nullptr;
  const absl::Status status = ThePlugin().Receive(static_cast<Comm*>(comm), args, &posted);
  return DeliverRequest(status, posted, request);
}

// v10
ncclResult_t Irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** phandles,
                   void** request) {
  return Receive(comm, {n, data, sizes, tags, nullptr, phandles}, mhandles, true, request);
}

// v9
ncclResult_t Irecv(void* comm, int n, void** data, size_t* sizes, int* tags, void** mhandles, void** request) {
  return Irecv(comm, n, data, sizes, tags, mhandles, nullptr, request);
}

// v6
ncclResult_t Irecv(void* comm, int n, void** data, int* sizes, int* tags, void** mhandles, void** request) {
  size_t wide[kReceivesMax];  // Receive refuses a larger n and a negative size.
  if (sizes != nullptr) std::copy_n(sizes, std::clamp(n, 0, kReceivesMax), wide);
  return Receive(comm, {n, data, sizes == nullptr ? nullptr : wide, tags}, mhandles, false, request);
}

ncclResult_t Flush(void* comm, int n, void** data, int* sizes, void** mhandles, void** request) {
  if (!Clear(request) || comm == nullptr || !AreBuffers(data, sizes, n)) return ncclInvalidArgument;
  MemoryRegion* regions[kReceivesMax];
  const FlushArgs args = {n, data, sizes, RegionsOf(mhandles, n, regions)};
  Request* posted = nullptr;
  const absl::Status status = ThePlugin().Flush(static_cast<Comm*>(comm), args, &posted);
  return DeliverRequest(status, posted, request);
}

ncclResult_t Test(void* request, int* done, int* sizes) {
  if (done == nullptr) return ncclInvalidArgument;
  *done = 0;
  if (request == nullptr) return ncclInvalidArgument;
  bool finished = false;
  const absl::Status status = ThePlugin().Test(static_cast<Request*>(request), &finished, sizes);
  if (status.ok() && finished) *done = 1;
  return ResultFromStatus(status);
}

ncclResult_t CloseComm(void* comm) {
  if (comm != nullptr) ThePlugin().CloseComm(static_cast<Comm*>(comm));
  return ncclSuccess;
}

ncclResult_t CloseListen(void* comm) {
  if (comm != nullptr) ThePlugin().CloseListen(static_cast<ListenComm*>(comm));
  return ncclSuccess;
}

template <class VProps>
ncclResult_t MakeVDevice(int* index, VProps* props) {
  if (index == nullptr || props == nullptr || props->ndevs < 1) return ncclInvalidArgument;
  if (props->ndevs > static_cast<int>(std::size(props->devs))) return ncclInvalidArgument;
  return Deliver(ThePlugin().MakeVirtualDevice(absl::MakeConstSpan(props->devs, props->ndevs)), index);
}

// What NCCL announces is seldom busy: lanes and memory are shared by what really is (lane_budget.h, busy_lanes.h).
ncclResult_t SetNetAttr(void* ctx, ncclNetAttr_v11_t* attr) {
  return ctx == nullptr || attr == nullptr ? ncclInvalidArgument : ncclSuccess;
}

// Entries that nobody fills are null, as shims.h lists.
template <class Table>
constexpr Table MakeTable() {
  constexpr int kVersion = kNetVersion<Table>;
  Table table = {};
  table.name = kName;
  table.init = Init<kVersion>;
  table.devices = kVersion < 11 ? LegacyDevices : Devices;
  table.getProperties = GetProperties<kVersion>;
  table.listen = Listen;
  table.connect = Connect;
  table.accept = Accept;
  table.regMr = RegMr;
  table.deregMr = DeregMr;
  table.isend = Isend;
  table.irecv = Irecv;
  table.iflush = Flush;
  table.test = Test;
  table.closeSend = CloseComm;
  table.closeRecv = CloseComm;
  table.closeListen = CloseListen;
  if constexpr (kVersion >= 11) {
    table.makeVDevice = MakeVDevice;
    table.finalize = Finalize;
    table.setNetAttr = SetNetAttr;
  }
  return table;
}

}  // namespace
}  // namespace tcpx::shim

extern "C" {
constexpr ncclNet_v6_t ncclNetPlugin_v6 = tcpx::shim::MakeTable<ncclNet_v6_t>();
constexpr ncclNet_v7_t ncclNetPlugin_v7 = tcpx::shim::MakeTable<ncclNet_v7_t>();
constexpr ncclNet_v8_t ncclNetPlugin_v8 = tcpx::shim::MakeTable<ncclNet_v8_t>();
constexpr ncclNet_v9_t ncclNetPlugin_v9 = tcpx::shim::MakeTable<ncclNet_v9_t>();
constexpr ncclNet_v10_t ncclNetPlugin_v10 = tcpx::shim::MakeTable<ncclNet_v10_t>();
constexpr ncclNet_v11_t ncclNetPlugin_v11 = tcpx::shim::MakeTable<ncclNet_v11_t>();
constexpr ncclNet_v12_t ncclNetPlugin_v12 = tcpx::shim::MakeTable<ncclNet_v12_t>();
}  // extern "C"
