#include "nccl/shim_common.h"

#include <atomic>
#include <climits>
#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"
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
// Every bit of the subsystem mask: a WARN with fewer may be dropped (2.13 to 2.30).
constexpr unsigned long kEverySubsystem = ~0ul;

// The loggers that init was given: one for each NCCL in the process, which is mostly one. Each has a sink of its own,
// because a sink takes no argument; beyond these the last one is everybody's.
constexpr size_t kLoggersMax = 4;
std::atomic<ncclDebugLogger_t> g_loggers[kLoggersMax];
// What init was given last.
std::atomic<ncclProfilerCallback_t> g_profiler{nullptr};

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

}  // namespace tcpx::shim
