// mixed_sweep.h: --mode mixed: a ping-pong under load, of the plugin and of bare sockets, by turns. Rank 0 only.
//
// Threads: the driver.
// Units:   those of the columns.
// Errors:  the first failure of either side ends the run.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/pair.h"
#include "bench/net_bench/report.h"

namespace tcpx {
namespace bench {

// A row for each size of the ping-pong.
absl::StatusOr<std::vector<MixedRow>> RunMixedSweep(const Options& options, Pair* pair);

}  // namespace bench
}  // namespace tcpx
