// cpu_plan.h: how many progress threads a process has, and on which CPUs they run.
//
// Purpose: a pod with a quota of two CPUs and eight ranks must not get a pool of spinning threads; a rank of a large
//          host must get one, and next to its NIC. The rules and their result for many machines: docs/cpus.md.
// Threads: any. Pure: what the machine is comes in as facts.
// Units:   CPUs, threads. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "common/cpu_facts.h"
#include "common/params.h"

namespace tcpx {

// What of the machine the process uses, as far as it is known when the threads start.
struct CpuDemand {
  int gpus = 1;                   // of this process
  std::vector<int> device_nodes;  // NUMA node of each network device, -1 where unknown
  int first_device = -1;          // the one that is used first, and by a single GPU mostly alone; -1: unknown
};

// Where one thread runs.
struct ThreadPlace {
  std::vector<int> cpus;     // empty: where its creator may
  std::vector<int> devices;  // those on its NUMA node; empty: it is near to none
  bool asked = false;        // TCPX_CPUS says so
};

struct ThreadPlan {
  int threads = 0;
  std::vector<ThreadPlace> places;  // one for each thread
  std::string reason;               // for the log
  std::string warning;              // empty: none is due
  bool caller_driven() const { return threads == 0; }
};

// Reads TCPX_THREADS and TCPX_CPUS of `options`.
ThreadPlan PlanThreads(const CpuFacts& facts, const CpuDemand& demand, const Options& options);

}  // namespace tcpx
