// cpu_facts.h: what the kernel and the launcher say about the CPUs of this process, and lists of CPUs as the kernel
// writes them.
//
// Purpose: the facts from which cpu_plan.h decides how many progress threads there are and where they run. They are the
//          container's and the process's, not those of the calling thread: NCCL binds the thread that calls, and the
//          threads it makes, to the GPU's NUMA node.
// Threads: any; no state. Read early, before NCCL has bound a thread of the process.
// Units:   CPU numbers, from 0; a list in memory is sorted and without repeats. A quota is CPUs and may be a fraction.
// Errors:  ParseCpuList: kInvalidArgument. No others: what can't be read is unknown, and does not limit.
// Source:  cgroups(7), cpuset(7), "List format" too; cpu.max and cpuset.cpus.effective
//          (Documentation/admin-guide/cgroup-v2.rst), cpu.cfs_quota_us (Documentation/scheduler/sched-bwc.rst),
//          cpuset.effective_cpus (Documentation/admin-guide/cgroup-v1/cpusets.rst), Cpus_allowed_list of
//          proc_pid_status(5), cpulist (Documentation/ABI/stable/sysfs-devices-node).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {

// "0-3,7" -> {0, 1, 2, 3, 7}. Empty text is an empty list.
absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text);

// {0, 1, 2, 3, 7} -> "0-3,7".
std::string FormatCpuList(const std::vector<int>& cpus);

// Those of `a` that are in `b` too.
std::vector<int> CommonCpus(const std::vector<int>& a, const std::vector<int>& b);

// An empty list is an unknown one.
struct CpuFacts {
  std::vector<int> container_cpus;  // of the cgroup's cpuset; where none is visible, those online
  bool has_cpuset = false;
  // Where a thread of the process may run, all threads together: the bound that the launcher set, whatever NCCL or
  // OpenMP has done to single threads since.
  std::vector<int> process_cpus;
  std::vector<int> parent_cpus;  // of the process that started this one
  double quota_cpus = 0;         // of the cgroups up to the root, the tightest; 0: none
  int ranks_on_host = 1;
  std::string ranks_source = "assumed";     // the variable that said so
  bool launcher_binds = false;              // the launcher says that it bound each rank by itself
  std::vector<std::vector<int>> node_cpus;  // by number of the NUMA node
};

using GetenvFunction = std::function<const char*(const char*)>;

// `root` is where /proc and /sys are looked up, "/" outside tests. A null `getenv_fn` is getenv(3).
CpuFacts ReadCpuFacts(const std::string& root = "/", const GetenvFunction& getenv_fn = nullptr);

}  // namespace tcpx
