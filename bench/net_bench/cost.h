// cost.h: what connections cost a process: time to set them up, threads, memory, descriptors, and CPU time while idle.
//
// Purpose: the modes setup and idle. The connections are one-way, rank 0 to rank 1, and each has carried a few messages
//          before its memory is counted.
// Threads: the driver; both ranks at the same time.
// Units:   seconds, bytes, counts.
// Errors:  those of the plugin.
// Source:  /proc/self/status, /proc/self/fd, getrusage(2).
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "bench/net_bench/command.h"
#include "bench/net_bench/control.h"
#include "bench/net_bench/plugin_host.h"
#include "bench/net_bench/shared_page.h"

namespace tcpx {
namespace bench {

// What a process holds right now.
struct Holdings {
  int32_t threads = 0;
  int32_t descriptors = 0;
  int32_t listening_sockets = 0;
  int64_t resident_bytes = 0;
};
Holdings CurrentHoldings();

struct CostResult {
  Holdings before;  // the plugin is loaded and initialised, nothing is connected
  Holdings after;   // all connected, traffic over
  double setup_seconds = 0;
  double idle_seconds = 0;
  double idle_cpu_seconds = 0;
  double close_seconds = 0;
};

// command.connections connections; kIdle sleeps command.seconds with them.
absl::StatusOr<CostResult> MeasureCost(const Command& command, int rank, PluginHost* host, Control* control,
                                       Position* position);

}  // namespace bench
}  // namespace tcpx
