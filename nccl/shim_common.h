// shim_common.h: what all tables share, those of one-sided transfers too: contexts, results and outputs.
//
// Threads: as NCCL's; the loggers and the profiler callback are kept in atomics.
// Errors:  ncclInvalidArgument for a missing or senseless argument, otherwise what ResultFromStatus says. What a call
//          gives out is null before it is tried, and counts are written whatever the outcome.
// Source:  NCCL 2.13 to 2.30: what it passes and what it tolerates.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/net_types.h"
#include "nccl/plugin_api.h"

namespace tcpx::shim {

// What NCCL_NET must say, in every version.
inline constexpr char kName[] = "tcpx";

// The one place that maps a status to NCCL's result. The table in plugin_api.h says which code means what.
ncclResult_t ResultFromStatus(const absl::Status& status);

// What every init does. `options` says nothing of `log` (null: stderr) and `profiler` (null: no events).
absl::StatusOr<Context*> CreateContext(ContextOptions options, ncclDebugLogger_t log, ncclProfilerCallback_t profiler);
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

}  // namespace tcpx::shim
