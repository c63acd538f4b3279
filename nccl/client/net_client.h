// net_client.h: the consumer's side of the ABI: opens any NCCL net plugin by path and speaks to it as NCCL would.
//
// Purpose: benchmarks and tests drive a plugin through its exported table, any of v6 to v12, with one interface,
//          that of the newest. What an older version lacks is adapted as NCCL's own adapters do (sizes cut to int,
//          no preset of *request before v9, no config before v10, ...).
// Threads: as NCCL: calls for different comms may run concurrently; the object itself is immutable after Open, but for
//          the context that Init stores.
// Errors:  Open returns a Status that names the path and the loader's text. All else returns the plugin's own result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "nccl/net_tables.h"

namespace tcpx {

class NetClient {
 public:
  // Opens `path` with RTLD_NOW | RTLD_LOCAL and takes the newest of v12..v6 that it exports, or exactly `version`.
  static absl::StatusOr<std::unique_ptr<NetClient>> Open(const std::string& path, int version = 0);
  // Closes the library. Does not call Finalize.
  virtual ~NetClient() = default;

  virtual int version() const = 0;
  virtual const char* name() const = 0;
  virtual bool has_finalize() const = 0;  // true from v11 on

  // Each Init makes one context (v11 and up: stored in *ctx; older: *ctx is set to null).
  virtual ncclResult_t Init(void** ctx, uint64_t comm_id, int traffic_class, ncclDebugLogger_t log,
                            ncclProfilerCallback_t profiler) = 0;
  virtual ncclResult_t Finalize(void* ctx) = 0;  // before v11: success, nothing called
  virtual ncclResult_t Devices(int* count) = 0;
  virtual ncclResult_t GetProperties(int dev, ncclNetProperties_v12_t* props) = 0;
  // Where the table has none (and before v11): ncclInvalidUsage, nothing called.
  virtual ncclResult_t MakeVDevice(int* dev, const ncclNetVDeviceProps_v12_t& props) = 0;
  virtual ncclResult_t Listen(void* ctx, int dev, void* handle, void** listen_comm) = 0;
  virtual ncclResult_t Connect(void* ctx, int dev, void* handle, void** send_comm) = 0;
  virtual ncclResult_t Accept(void* listen_comm, void** recv_comm) = 0;
  virtual ncclResult_t RegMr(void* comm, void* data, size_t size, int type, void** mhandle) = 0;
  virtual ncclResult_t DeregMr(void* comm, void* mhandle) = 0;
  virtual ncclResult_t Isend(void* send_comm, void* data, size_t size, int tag, void* mhandle, void* phandle,
                             void** request) = 0;
  virtual ncclResult_t Irecv(void* recv_comm, int n, void** data, size_t* sizes, int* tags, void** mhandles,
                             void** phandles, void** request) = 0;
  virtual ncclResult_t Iflush(void* recv_comm, int n, void** data, int* sizes, void** mhandles, void** request) = 0;
  virtual ncclResult_t Test(void* request, int* done, int* sizes) = 0;
  virtual ncclResult_t CloseSend(void* send_comm) = 0;
  virtual ncclResult_t CloseRecv(void* recv_comm) = 0;
  virtual ncclResult_t CloseListen(void* listen_comm) = 0;
};

}  // namespace tcpx
