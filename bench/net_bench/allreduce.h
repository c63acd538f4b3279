// allreduce.h: a ring all-reduce of floats over a plugin, as a job would run it, with the sums checked.
//
// Purpose: the one mode where both directions, dependencies between messages, and several ranks come together. Data is
//          sent from where it lies and received into slots, as NCCL does without GPU direct; the sum is a real one.
// Threads: one driver per rank. All ranks are on one machine and share the page.
// Units:   bytes, GB/s (1e9 bytes) as nccl-tests reports them.
// Errors:  the plugin's; a wrong sum is reported in the table and makes the run fail.
#pragma once

#include "absl/status/status.h"
#include "bench/net_bench/control.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/place.h"

namespace tcpx {
namespace bench {

// Control connections to the neighbours in the ring.
struct RingControls {
  Control* next = nullptr;
  Control* previous = nullptr;
};

// Rank 0 prints the report.
absl::Status RunAllreduceRank(const Options& options, const WorkerPlace& place, const RingControls& controls);

}  // namespace bench
}  // namespace tcpx
