// snapshot.h: everything that the statistics know at one moment, for those that show it.
//
// Threads: plain data. Units: as in numbers.h; seconds since 1970 where a name ends in _unix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net_socket/stats/numbers.h"
#include "net_socket/stats/rma_numbers.h"
#include "net_socket/stats/thread_times.h"
#include "net_socket/stats/totals.h"

namespace tcpx {

struct ProcessNumbers {
  std::string host;
  int pid = 0;
  std::string mark;  // ProcessMark: the PID, and in a container its PID namespace too
  int uid = 0;
  std::string slurm_job_id;  // "unknown" outside of one
  double started_unix = 0;   // the plugin's first connection
};

struct Snapshot {
  ProcessNumbers process;
  double now_unix = 0;
  int64_t now_ns = 0;          // of MonotonicNanos: for differences
  uint64_t collection_ns = 0;  // CPU that the statistics themselves have taken
  uint64_t looks = 0;
  std::vector<ThreadTimes> threads;
  Totals totals;
  RmaNumbers rma;
  std::vector<ConnectionNumbers> connections;  // open ones; empty where not asked for
};

}  // namespace tcpx
