// cases.h: what NCCL does other than collectives: splits, traffic classes, aborts, dead ranks, and being made again and
// again.
//
// Threads: one per process.
// Errors:  what went wrong, from whatever went wrong; RunCase is OK exactly when the case went as it should.
// Source:  NCCL 2.28.3 and later unload the plugin with the last communicator, unless NCCL_NET_PLUGIN_REF_COUNT says
//          otherwise.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "bench/nccl_bench/measure.h"
#include "bench/nccl_bench/options.h"
#include "bench/nccl_bench/rendezvous.h"
#include "bench/nccl_bench/watchdog.h"

namespace tcpx {
namespace nccl_bench {

// The largest message of a case, which Measure is to be prepared for: what is disturbed is as large as the largest size
// asked for.
uint64_t CaseBytes(const Options& options);

struct CaseContext {
  const Options& options;
  const Job& job;
  Rendezvous* rendezvous;
  Watchdog* watchdog;
  Measure* measure;
};

// Runs any mode except bench. In mode killed the last rank does not return.
absl::Status RunCase(const CaseContext& context);

}  // namespace nccl_bench
}  // namespace tcpx
