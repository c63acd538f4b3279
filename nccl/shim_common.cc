#include "nccl/shim_common.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "nccl/profiler_tables.h"

namespace tcpx::shim {
namespace {

static_assert(kHandleBytes == NCCL_NET_HANDLE_MAXSIZE);
static_assert(kNicsMax == NCCL_NET_MAX_DEVS_PER_NIC_V12);
static_assert(kNoTrafficClass == NCCL_NET_TRAFFIC_CLASS_UNDEF);
static_assert(static_cast<int>(MemoryType::kHost) == NCCL_PTR_HOST);
static_assert(static_cast<int>(MemoryType::kCuda) == NCCL_PTR_CUDA);
static_assert(static_cast<int>(MemoryType::kDmaBuf) == NCCL_PTR_DMABUF);
static_assert(static_cast<int>(LogLevel::kWarn) == NCCL_LOG_WARN);
static_assert(static_cast<int>(LogLevel::kInfo) == NCCL_LOG_INFO);
static_assert(static_cast<int>(LogLevel::kTrace) == NCCL_LOG_TRACE);

static_assert(static_cast<int>(EventStep::kStart) == ncclProfilerNetEventStart);
static_assert(static_cast<int>(EventStep::kStop) == ncclProfilerNetEventStop);
static_assert(static_cast<int>(EventStep::kUpdate) == ncclProfilerNetEventUpdate);

// As NCCL's own socket transport: profilers know its descriptor.
constexpr int64_t kSocketPluginId = NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER;
// No object is larger, and every negative int is when it is cast to size_t.
constexpr size_t kMostBytes = PTRDIFF_MAX;
// Every bit of the subsystem mask: a WARN with fewer may be dropped (2.13 to 2.30).
constexpr unsigned long kEverySubsystem = ~0ul;

// The loggers that init was given: one for each NCCL in the process, which is mostly one. Each has a sink of its own,
// because a sink takes no argument; beyond these the last one is everybody's.
constexpr size_t kLoggersMax = 4;
std::atomic<ncclDebugLogger_t> g_loggers[kLoggersMax];
// What init was given last.
std::atomic<ncclProfilerCallback_t> g_profiler{nullptr};
std::atomic<Context*> g_legacy_context{nullptr};

template <size_t kSlot>
void ForwardLog(LogLevel level, uint64_t subsystem, const char* file, int line, const char* text) {
  const ncclDebugLogger_t log = g_loggers[kSlot].load(std::memory_order_acquire);
  if (log == nullptr) return;
  const unsigned long flags = level == LogLevel::kWarn ? kEverySubsystem : subsystem;
  log(static_cast<ncclDebugLogLevel>(level), flags, file, line, "%s", text);
}

constexpr LogSink kSinks[kLoggersMax] = {ForwardLog<0>, ForwardLog<1>, ForwardLog<2>, ForwardLog<3>};

LogSink SinkOf(ncclDebugLogger_t log) {
  if (log == nullptr) return nullptr;
  for (size_t slot = 0; slot < kLoggersMax; ++slot) {
    ncclDebugLogger_t there = nullptr;
    if (g_loggers[slot].compare_exchange_strong(there, log) || there == log) return kSinks[slot];
  }
  g_loggers[kLoggersMax - 1].store(log, std::memory_order_release);
  return kSinks[kLoggersMax - 1];
}

// The callback reports success whatever happens (2.26 to 2.30).
void ForwardEvent(void** event, EventStep step, void* parent, const SocketEvent& about) {
  const ncclProfilerCallback_t profiler = g_profiler.load(std::memory_order_acquire);
  if (profiler == nullptr) return;
  ncclProfilerNetSockDescr_v1_t description = {};
  description.type = ncclProfileSocket;
  description.sock.fd = about.fd;
  description.sock.op = about.receive ? 1 : 0;
  description.sock.length = about.bytes;
  (void)profiler(event, static_cast<int>(step), parent, kSocketPluginId, &description);
}

void WarnOfInit(LogSink sink, const absl::Status& status) {
  const std::string text = absl::StrFormat("NET/%s: init failed: %s", kName, status.message());
  if (sink != nullptr) {
    sink(LogLevel::kWarn, kEverySubsystem, __FILE__, __LINE__, text.c_str());
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
}

absl::StatusOr<Context*> CreateContext(ContextOptions options, ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
  options.traffic_class = TrafficClass(options.traffic_class);
  options.log = SinkOf(log);
  // A null callback does not replace one that other contexts still use.
  if (profiler != nullptr) {
    g_profiler.store(profiler, std::memory_order_release);
    options.profiler = &ForwardEvent;
  }
  absl::StatusOr<Context*> context = ThePlugin().CreateContext(options);
  if (!context.ok()) WarnOfInit(options.log, context.status());
  return context;
}

ncclResult_t Deliver(const absl::Status& status, Request* request, void** out) {
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

}  // namespace

ncclResult_t ResultFromStatus(const absl::Status& status) {
  if (status.ok()) return ncclSuccess;  // Nearly all calls; cheaper than asking for the code.
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return ncclRemoteError;
    case absl::StatusCode::kInvalidArgument:
      return ncclInvalidUsage;
    case absl::StatusCode::kFailedPrecondition:
      return ncclInvalidArgument;
    case absl::StatusCode::kAborted:
      return ncclUnhandledCudaError;
    case absl::StatusCode::kInternal:
      return ncclInternalError;
    default:
      return ncclSystemError;
  }
}

ncclResult_t InitLegacy(const ContextOptions& options, ncclDebugLogger_t log, ncclProfilerCallback_t profiler) {
  const absl::StatusOr<Context*> context = CreateContext(options, log, profiler);
  g_legacy_context.store(context.ok() ? *context : nullptr, std::memory_order_release);
  return ncclSuccess;
}

Context* LegacyContext() { return g_legacy_context.load(std::memory_order_acquire); }

ncclResult_t LegacyDevices(int* count) {
  if (LegacyContext() != nullptr) return Devices(count);
  if (count == nullptr) return ncclInvalidArgument;
  *count = 0;
  return ncclSuccess;
}

ncclResult_t InitContext(void** ctx, const ContextOptions& options, ncclDebugLogger_t log,
                         ncclProfilerCallback_t profiler) {
  return Clear(ctx) ? Deliver(CreateContext(options, log, profiler), ctx) : ncclInvalidArgument;
}

ncclResult_t Finalize(void* ctx) {
  if (ctx == nullptr) return ncclSuccess;
  return ResultFromStatus(ThePlugin().DestroyContext(static_cast<Context*>(ctx)));
}

ncclResult_t Devices(int* count) {
  if (count == nullptr) return ncclInvalidArgument;
  *count = 0;
  return Deliver(ThePlugin().DeviceCount(), count);
}

int TrafficClass(int configured) { return configured == INT_MIN ? kNoTrafficClass : configured; }

ncclResult_t ReadProperties(int dev, DeviceProperties* properties) {
  absl::StatusOr<DeviceProperties> read = ThePlugin().GetProperties(dev);
  if (!read.ok()) return ResultFromStatus(read.status());
  *properties = *std::move(read);
  properties->max_p2p_bytes = ClipToNccl(properties->max_p2p_bytes);
  properties->max_collective_bytes = ClipToNccl(properties->max_collective_bytes);
  if (properties->children.empty()) properties->children = {dev};
  return ncclSuccess;
}

ncclResult_t MakeVirtualDevice(int* index, const int* children, int count, int count_max) {
  if (index == nullptr || count < 1 || count > count_max) return ncclInvalidArgument;
  return Deliver(ThePlugin().MakeVirtualDevice(absl::MakeConstSpan(children, count)), index);
}

ncclResult_t Listen(void* ctx, int dev, void* handle, void** listen_comm) {
  if (!Clear(listen_comm) || ctx == nullptr || handle == nullptr) return ncclInvalidArgument;
  return Deliver(ThePlugin().Listen(static_cast<Context*>(ctx), dev, handle), listen_comm);
}

ncclResult_t Connect(void* ctx, int dev, void* handle, int traffic_class, void** send_comm) {
  if (!Clear(send_comm) || ctx == nullptr || handle == nullptr) return ncclInvalidArgument;
  const ConnectOptions options{TrafficClass(traffic_class)};
  return Deliver(ThePlugin().Connect(static_cast<Context*>(ctx), dev, handle, options), send_comm);
}

ncclResult_t Accept(void* listen_comm, void** recv_comm) {
  if (!Clear(recv_comm) || listen_comm == nullptr) return ncclInvalidArgument;
  return Deliver(ThePlugin().Accept(static_cast<ListenComm*>(listen_comm)), recv_comm);
}

ncclResult_t RegMr(void* comm, void* data, size_t size, int type, void** mhandle) {
  if (!Clear(mhandle) || comm == nullptr || !IsBuffer(data, size) || !IsMemoryType(type)) return ncclInvalidArgument;
  return Deliver(ThePlugin().RegisterMemory(static_cast<Comm*>(comm), data, size, static_cast<MemoryType>(type)),
                 mhandle);
}

// An error here or from a close would keep NCCL from releasing everything that is left (2.12 to 2.30).
ncclResult_t DeregMr(void* comm, void* mhandle) {
  if (comm != nullptr && mhandle != nullptr) {
    ThePlugin().DeregisterMemory(static_cast<Comm*>(comm), static_cast<MemoryRegion*>(mhandle));
  }
  return ncclSuccess;
}

ncclResult_t Send(void* comm, const SendArgs& args, void** request) {
  if (!Clear(request) || comm == nullptr) return ncclInvalidArgument;
  if (!IsBuffer(args.data, args.bytes)) {
    return Refuse(comm, "isend: the buffer is null or its size negative: pass a buffer of at least its size");
  }
  Request* posted = nullptr;
  const absl::Status status = ThePlugin().Send(static_cast<Comm*>(comm), args, &posted);
  return Deliver(status, posted, request);
}

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
  return Deliver(status, posted, request);
}

ncclResult_t Flush(void* comm, int n, void** data, int* sizes, void** mhandles, void** request) {
  if (!Clear(request) || comm == nullptr || !AreBuffers(data, sizes, n)) return ncclInvalidArgument;
  MemoryRegion* regions[kReceivesMax];
  const FlushArgs args = {n, data, sizes, RegionsOf(mhandles, n, regions)};
  Request* posted = nullptr;
  const absl::Status status = ThePlugin().Flush(static_cast<Comm*>(comm), args, &posted);
  return Deliver(status, posted, request);
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

}  // namespace tcpx::shim
