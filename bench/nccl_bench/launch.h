// launch.h: one process per rank and network, and what they need to know.
//
// Purpose: NCCL reads NCCL_NET and its like once per process, so each network gets processes of its own. This one
//          starts them: all ranks of this machine with --local, else its own rank.
// Threads: one.
// Errors:  the exit code of the program, with the reasons on stderr.
// Source:  NCCL_HOSTID makes ranks of one machine count as different hosts, so that they may share a GPU and use the
//          network; NCCL_NET must equal the plugin's name, or initialisation fails.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bench/nccl_bench/job.h"
#include "bench/nccl_bench/options.h"

namespace tcpx {
namespace nccl_bench {

// What a rank that Launch started finds in its environment.
inline constexpr char kChildVariable[] = "NCCL_BENCH_CHILD";           // set: this process is one rank
inline constexpr char kNetVariable[] = "NCCL_BENCH_NET";               // the network to assert
inline constexpr char kRowsVariable[] = "NCCL_BENCH_ROWS_FD";          // where rank 0 writes its rows
inline constexpr char kListenerVariable[] = "NCCL_BENCH_LISTENER_FD";  // where rank 0 listens already

// The variables that make NCCL use `net` and say so in `log_file`. An empty value removes a variable.
std::map<std::string, std::string> NetEnvironment(const Options& options, const std::string& net,
                                                  const std::string& log_file, const Environment& environment);

// True exactly when each local rank has to say that it is a host of its own.
bool OwnHosts(const Options& options, int gpus);

// `arguments` are those of this process, which its children get too. `gpus` is the number of CUDA devices here.
int Launch(const Options& options, const std::vector<std::string>& arguments, int gpus);

}  // namespace nccl_bench
}  // namespace tcpx
