// rank.h: one rank of a job, from meeting the others to the proof of which network it used.
//
// Threads: one, and the watchdog's.
// Errors:  the exit code of the process, with the reasons on stderr.
#pragma once

#include "bench/nccl_bench/options.h"

namespace tcpx {
namespace nccl_bench {

// `devices` is the number of CUDA devices here, at least 1.
int RunRank(const Options& options, int devices);

}  // namespace nccl_bench
}  // namespace tcpx
