// shim_common.h: the work of the tables, once for all versions, in the widest shape that any version has.
//
// Purpose: checks what NCCL passes, converts it to plugin_api.h and the outcome back. shims.cc brings the arguments of
//          each version into this shape.
// Threads: as NCCL's; the logger, the profiler callback and the context of v6 to v10 are kept in atomics.
// Units:   sizes are bytes. A negative int size arrives here as a huge size_t and is refused.
// Errors:  ncclInvalidArgument for a missing or senseless argument, otherwise what ResultFromStatus says. Whatever the
//          outcome, *request, *done, comms, handles and counts are written.
// Source:  NCCL 2.13 to 2.30: what it passes and what it tolerates.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/net_types.h"
#include "nccl/plugin_api.h"

namespace tcpx::shim {

// What NCCL_NET must say, in every version.
inline constexpr char kName[] = "tcpx";

// The one place that maps a status to NCCL's result. The table in plugin_api.h says which code means what.
ncclResult_t ResultFromStatus(const absl::Status& status);

// init of v6 to v10. Always succeeds: NCCL 2.28.3 to 2.29.3 crash when such an init fails. LegacyDevices tells instead.
// Here and in InitContext `options` says nothing of `log` (null: stderr) and `profiler` (null: no events).
ncclResult_t InitLegacy(const ContextOptions& options, ncclDebugLogger_t log, ncclProfilerCallback_t profiler);
// The context of the last InitLegacy; null before the first one and after one that could not make it.
Context* LegacyContext();
// Zero devices while there is no LegacyContext.
ncclResult_t LegacyDevices(int* count);

// init of v11 and up.
ncclResult_t InitContext(void** ctx, const ContextOptions& options, ncclDebugLogger_t log,
                         ncclProfilerCallback_t profiler);
ncclResult_t Finalize(void* ctx);
ncclResult_t Devices(int* count);

// True exactly when `out` was there to be cleared.
inline bool Clear(void** out) {
  if (out != nullptr) *out = nullptr;
  return out != nullptr;
}

// `out` was cleared, and stays so after an error.
template <class T, class Out>
ncclResult_t Deliver(const absl::StatusOr<T>& made, Out* out) {
  if (made.ok()) *out = *made;
  return ResultFromStatus(made.status());
}

// A config's traffic class as the transport understands it: also INT_MIN, NCCL's "not configured", becomes undefined.
int TrafficClass(int configured);

// `properties` is set only on success. Limits are in NCCL's range and `children` is not empty then.
ncclResult_t ReadProperties(int dev, DeviceProperties* properties);
ncclResult_t MakeVirtualDevice(int* index, const int* children, int count, int count_max);

ncclResult_t Listen(void* ctx, int dev, void* handle, void** listen_comm);
ncclResult_t Connect(void* ctx, int dev, void* handle, int traffic_class, void** send_comm);
ncclResult_t Accept(void* listen_comm, void** recv_comm);

ncclResult_t RegMr(void* comm, void* data, size_t size, int type, void** mhandle);
ncclResult_t DeregMr(void* comm, void* mhandle);

ncclResult_t Send(void* comm, const SendArgs& args, void** request);
// Fills in args.regions, from `mhandles`, and args.optional_completion: where `reads_request` (v9 and up), *request may
// hold NCCL_NET_OPTIONAL_RECV_COMPLETION on entry.
ncclResult_t Receive(void* comm, ReceiveArgs args, void** mhandles, bool reads_request, void** request);

ncclResult_t Flush(void* comm, int n, void** data, int* sizes, void** mhandles, void** request);
ncclResult_t Test(void* request, int* done, int* sizes);

ncclResult_t CloseComm(void* comm);
ncclResult_t CloseListen(void* comm);

}  // namespace tcpx::shim
