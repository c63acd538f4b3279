// cpu_budget.h: how many CPUs this process may keep busy, and what that means for progress threads.
//
// Purpose: a pod with a quota of two CPUs and eight ranks must not get a pool of spinning threads.
//
// Threads: any; no state. The affinity mask is the calling thread's.
// Units:   CPUs; a quota may be a fraction.
// Errors:  none: what can't be read does not limit.
// Source:  cgroups(7); cpu.max (Documentation/admin-guide/cgroup-v2.rst), cpu.cfs_quota_us and cpu.cfs_period_us
//          (Documentation/scheduler/sched-bwc.rst).
#ifndef TCPX_COMMON_CPU_BUDGET_H_
#define TCPX_COMMON_CPU_BUDGET_H_

#include <functional>
#include <string>

namespace tcpx {

struct CpuBudget {
  int affinity_cpus = 1;
  double quota_cpus = 0;  // 0 is no quota
  int usable = 1;         // the smaller of both, the quota rounded down, at least 1
  int ranks_on_host = 1;
  int budget = 1;      // usable / ranks_on_host, rounded down; 0 when there are more ranks than CPUs
  std::string source;  // "8 cpus (affinity 8, quota none) / 2 ranks (LOCAL_WORLD_SIZE)"
};

using GetenvFunction = std::function<const char*(const char*)>;

// `root` is where /proc and /sys are looked up, "/" outside tests. A null `getenv_fn` is getenv(3).
CpuBudget ReadCpuBudget(const std::string& root = "/", const GetenvFunction& getenv_fn = nullptr);

struct ThreadPlan {
  bool caller_driven = true;  // true exactly when `threads` is 0
  int threads = 0;
  std::string reason;
};

// `threads_option` is Options::threads: -1 decides by the budget, 0 is caller-driven, more is that many.
ThreadPlan PlanThreads(const CpuBudget& budget, int threads_option);

}  // namespace tcpx

#endif  // TCPX_COMMON_CPU_BUDGET_H_
