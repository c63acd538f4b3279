// worker.h: the life of one driver process.
//
// Threads: one; the plugin may have its own.
// Errors:  what ends a worker is written to the shared page, and its exit code is 1.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "bench/net_bench/control.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/pair.h"

namespace tcpx {
namespace bench {

// Rank 0 plans, measures and prints; rank 1 obeys.
absl::Status RunPlanner(const Options& options, const WorkerPlace& place, Control* control);
absl::Status RunFollower(const Options& options, const WorkerPlace& place, Control* control);

}  // namespace bench
}  // namespace tcpx
