// plugin_api.h: what the transport offers to the NCCL tables, in neutral types.
//
// Purpose: the one seam between the versioned ncclNet_vN tables (nccl/shims) and the transport (net_socket). The tables
//          convert arguments and results and hold no logic; the transport knows no NCCL type.
// Threads: as NCCL uses a network plugin. Functions may be entered concurrently for different objects. On one Comm,
//          Send, Receive and Test come from one thread at a time, while RegisterMemory and DeregisterMemory may run
//          at the same time on another.
// Units:   sizes are bytes, speeds Mbit/s, latencies microseconds.
// Errors:  an absl::Status whose code says whose fault it was; ResultFromStatus (nccl/shim_common.h) maps it:
//            kUnavailable         the peer or the network          -> ncclRemoteError
//            kInvalidArgument     the user or the peer's user      -> ncclInvalidUsage
//            kFailedPrecondition  a wrong argument (NULL, index)   -> ncclInvalidArgument
//            kAborted             a CUDA driver call failed        -> ncclUnhandledCudaError
//            kInternal            our own contract is broken       -> ncclInternalError
//            anything else        the local kernel                 -> ncclSystemError
//          "Not yet" is never an error: it is a null object with an OK status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/limits.h"
#include "common/log.h"
#include "common/traffic_class.h"

namespace tcpx {

// Opaque to the tables; defined by the transport (and by a fake in the tables' own tests).
class Context;       // one NCCL communicator (v11 and up), or the process (v6 to v10)
class ListenComm;    // what listen returns
class Comm;          // a send comm or a receive comm
class Request;       // one isend, irecv or iflush that has not been reported done
class MemoryRegion;  // what regMr returns

// Bytes of listen's and connect's handle: NCCL_NET_HANDLE_MAXSIZE, NCCL 2.12 and later.
inline constexpr size_t kHandleBytes = 128;

// Kinds of memory, with the bits of NCCL_PTR_HOST, NCCL_PTR_CUDA and NCCL_PTR_DMABUF.
enum class MemoryType : int { kHost = 1, kCuda = 2, kDmaBuf = 4 };

// What happened to a profiler's event of one socket, with the values of NCCL's callback.
enum class EventStep : int { kStart = 0, kStop = 1, kUpdate = 2 };
struct SocketEvent {
  int fd = -1;  // -1: several sockets
  bool receive = false;
  size_t bytes = 0;  // of the request over this socket, so far
};
// The profiler of v10 and up. `event` must point to a null pointer before a start, and is null still when the profiler
// does not want the event: then it must not be updated or stopped. `parent` is the isend's or irecv's, still in flight.
using ProfilerSink = void (*)(void** event, EventStep step, void* parent, const SocketEvent& about);

struct ContextOptions {
  int api_version = 0;                  // 6 to 12
  uint64_t comm_id = 0;                 // 0 before v11
  int traffic_class = kNoTrafficClass;  // octet as in IPv4 TOS, or kNoTrafficClass
  LogSink log = nullptr;                // null: stderr
  ProfilerSink profiler = nullptr;      // null: no events
  bool one_sided = false;               // fails with the communicator's other context
};

struct ConnectOptions {
  int traffic_class = kNoTrafficClass;  // v10 only: connect's config; otherwise the context decides
};

struct DeviceProperties {
  const char* name = nullptr;      // lives until the library is unloaded
  const char* pci_path = nullptr;  // null for a device that is not on a PCI bus; lives as long
  uint64_t guid = 0;
  int pointer_support = 0;  // bits of MemoryType
  int speed_mbps = 0;
  int port = 0;
  float latency_us = 0;
  int max_comms = 0;
  int max_receives = 0;  // largest n of a grouped receive
  size_t max_p2p_bytes = 0;
  size_t max_collective_bytes = 0;
  std::vector<int> children;  // own index for a physical device
};

struct SendArgs {
  const void* data = nullptr;
  size_t bytes = 0;
  int tag = 0;
  MemoryRegion* region = nullptr;   // may be null
  void* profiler_parent = nullptr;  // may be null
  bool* peer_gone = nullptr;        // not null: the last message; set, and nothing sent, where the peer has closed
  size_t next_bytes = 0;            // not 0: a message of so many bytes comes at once; both may leave together
};

struct ReceiveArgs {
  int count = 0;  // 1 to max_receives
  void* const* data = nullptr;
  const size_t* bytes = nullptr;  // capacities
  const int* tags = nullptr;
  MemoryRegion* const* regions = nullptr;   // may be null, as may its entries
  void* const* profiler_parents = nullptr;  // may be null, as may its entries
  bool optional_completion = false;         // NCCL_NET_OPTIONAL_RECV_COMPLETION was preset; count is 1
  bool unawaited = false;                   // nobody waits for it: while nothing of it has come the connection is idle
  bool knows_hint = true;                   // the interface has it: without it any receive may be read as it arrives
};

struct FlushArgs {
  int count = 0;
  void* const* data = nullptr;
  const int* bytes = nullptr;
  MemoryRegion* const* regions = nullptr;
};

// Contexts and devices.
class DeviceApi {
 public:
  virtual ~DeviceApi() = default;

  // init of every version. Idempotent for api_version <= 10: returns the one process context.
  virtual absl::StatusOr<Context*> CreateContext(const ContextOptions& options) = 0;
  // finalize. A null context is a no-op. Returns once no thread works for this context.
  virtual absl::Status DestroyContext(Context* context) = 0;

  virtual absl::StatusOr<int> DeviceCount() = 0;
  virtual absl::StatusOr<DeviceProperties> GetProperties(int device) = 0;
  virtual absl::StatusOr<int> MakeVirtualDevice(absl::Span<const int> children) = 0;
};

class ConnectionApi {
 public:
  virtual ~ConnectionApi() = default;

  // `handle` points to kHandleBytes bytes, of any alignment.
  virtual absl::StatusOr<ListenComm*> Listen(Context* context, int device, void* handle) = 0;
  // Polled with the same `handle`; null means "not yet". Never blocks.
  virtual absl::StatusOr<Comm*> Connect(Context* context, int device, void* handle, const ConnectOptions& options) = 0;
  // Polled; null means "not yet". Never blocks.
  virtual absl::StatusOr<Comm*> Accept(ListenComm* listen) = 0;

  // Close always works and never blocks for long; null is a no-op.
  virtual void CloseComm(Comm* comm) = 0;
  virtual void CloseListen(ListenComm* listen) = 0;
};

// Memory and messages of one comm.
class TransferApi {
 public:
  virtual ~TransferApi() = default;

  virtual absl::StatusOr<MemoryRegion*> RegisterMemory(Comm* comm, void* data, size_t bytes, MemoryType type) = 0;
  // After the return neither the plugin nor the kernel touches the region. Never fails; null is a no-op.
  virtual void DeregisterMemory(Comm* comm, MemoryRegion* region) = 0;

  // OK with a null *request: cannot post now, call again. The incoming value of *request is never read.
  virtual absl::Status Send(Comm* comm, const SendArgs& args, Request** request) = 0;
  virtual absl::Status Receive(Comm* comm, const ReceiveArgs& args, Request** request) = 0;
  // A null *request means complete.
  virtual absl::Status Flush(Comm* comm, const FlushArgs& args, Request** request) = 0;
  // Writes *done always. `sizes` may be null; else one int per buffer. After done the request is gone.
  virtual absl::Status Test(Request* request, bool* done, int* sizes) = 0;

  // Its user has found what the peer broke: the connection fails, the peer and the communicator hear of it.
  virtual void Fail(Comm* comm, const absl::Status& status) = 0;
  // Its user knows who the peer of an accepted connection of a one-sided context is. Before, its failure costs nothing
  // else, and is in no log.
  virtual void Adopt(Comm* comm) = 0;
  // The log has said why.
  virtual bool HasFailed(Comm* comm) = 0;
  // A call on `comm` was refused because of its arguments: `text` tells the user what to pass, once per connection.
  virtual void ReportMisuse(Comm* comm, absl::string_view text) = 0;
};

// What is called for each message is first: it needs no adjusted pointer.
class PluginApi : public TransferApi, public ConnectionApi, public DeviceApi {};

// What the exported tables call: the shared library defines it with the transport, a test with a fake. The same object
// every time, alive until the library is unloaded. From any thread; the first call may create it, and must not fail nor
// do anything expensive: NCCL may call init without using the plugin afterwards.
PluginApi& ThePlugin();

}  // namespace tcpx
