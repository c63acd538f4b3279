// launch.h: the processes of a benchmark, from what its command line says to its exit code.
//
// Threads: the only one of the process.
// Errors:  one line on stderr, and the exit code 1.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "bench/net_bench/options.h"

namespace tcpx {
namespace bench {

inline constexpr int kExitUsage = 2;

// Says what is wrong, under the program's name; the exit code for it.
int Fail(const Options& options, const absl::Status& status);
// dlopen looks a bare name up in the library path; a file that lies here is meant.
void MeanFileHere(std::string* plugin);
// Forks, runs and watches the workers. Returns the exit code.
int Launch(const Options& options);

}  // namespace bench
}  // namespace tcpx
