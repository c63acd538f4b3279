// flag_sweep.h: --optional-recv: the same messages with NCCL's hint and without, by turns. Rank 0 only.
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
#include "common/payload/flag_lines.h"

namespace tcpx {
namespace bench {

struct FlagCell {
  LineKind kind;
  uint64_t bytes;
};
// The sizes asked for, cut to whole lines, or what NCCL uses most.
std::vector<FlagCell> FlagCellsFor(const Options& options);

absl::StatusOr<std::vector<FlagRow>> RunFlagSweep(const Options& options, Pair* pair);

}  // namespace bench
}  // namespace tcpx
