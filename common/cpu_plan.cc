#include "common/cpu_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/counted.h"

namespace tcpx {
namespace {

// Below this many CPUs for one GPU a progress thread would not have a core of its own (docs/cpus.md).
constexpr int kPoolCpusMin = 3;
constexpr int kThreadsPerDevice = 4;
// However many GPUs and devices one process drives: its other threads need cores too.
constexpr int kThreadsMax = 32;

int Size(const std::vector<int>& numbers) { return static_cast<int>(numbers.size()); }

// The CPUs of this rank and how it came to them.
struct Budget {
  std::vector<int> allowed;  // empty: unknown
  int usable = 1;            // of them, within the quota
  bool own = false;          // the launcher gave them to this rank alone
  int share = 1;             // what is this rank's part of them
  std::string source;        // "128 cpus (cpuset 128, process 128, quota none) / 8 ranks (LOCAL_WORLD_SIZE)"
};

int WithinQuota(int cpus, double quota) {
  return quota > 0 && quota < cpus ? std::max(1, static_cast<int>(quota)) : std::max(1, cpus);
}

// A mask that is narrower than the container's CPUs is either each rank's own (srun, mpirun, numactl before each), or
// one for all ranks together (taskset before torchrun). It is the rank's own where the launcher may run on more.
bool IsOwnMask(const CpuFacts& facts, const std::vector<int>& allowed) {
  if (facts.ranks_on_host == 1 || allowed.size() >= facts.container_cpus.size()) return false;
  const bool parent_wider =
      facts.parent_cpus.size() > allowed.size() && CommonCpus(facts.parent_cpus, allowed).size() == allowed.size();
  return facts.launcher_binds || parent_wider;
}

std::vector<int> AllowedCpus(const CpuFacts& facts) {
  if (facts.container_cpus.empty()) return facts.process_cpus;
  if (facts.process_cpus.empty()) return facts.container_cpus;
  // The lists may have been read around a change: then the mask is what the kernel goes by.
  std::vector<int> both = CommonCpus(facts.process_cpus, facts.container_cpus);
  return both.empty() ? facts.process_cpus : both;
}

Budget BudgetOf(const CpuFacts& facts) {
  Budget budget;
  const int ranks = std::max(1, facts.ranks_on_host);
  budget.allowed = AllowedCpus(facts);
  budget.own = IsOwnMask(facts, budget.allowed);
  budget.usable = WithinQuota(Size(budget.allowed), facts.quota_cpus);
  budget.share = budget.usable / ranks;
  // Masks of several ranks may overlap (all of a socket's): at most an equal part of the container.
  if (budget.own) {
    budget.share = std::min(budget.usable, WithinQuota(Size(facts.container_cpus), facts.quota_cpus) / ranks);
  }
  const std::string quota = facts.quota_cpus > 0 ? absl::StrFormat("%.2f", facts.quota_cpus) : "none";
  const size_t container = facts.container_cpus.size();
  budget.source = absl::StrCat(
      Counted(budget.usable, "cpu"), " (", facts.has_cpuset ? "cpuset " : "online ",
      container == 0 ? "unknown" : absl::StrCat(container), ", process ", facts.process_cpus.size(), ", quota ", quota,
      budget.own ? "), this rank's own of " : ") / ", Counted(ranks, "rank"), " (", facts.ranks_source, ")");
  return budget;
}

void Count(const Budget& budget, const CpuDemand& demand, const Options& options, ThreadPlan* plan) {
  const int gpus = std::max(1, demand.gpus);
  // In use: a GPU uses mostly one device; several GPUs may share one.
  const int devices = std::max(1, std::min(gpus, Size(demand.device_nodes)));
  plan->reason = budget.source;
  if (gpus > 1) absl::StrAppend(&plan->reason, " for ", gpus, " gpus on ", Counted(devices, "device"));
  if (options.threads >= 0) {
    plan->threads = options.threads;
    plan->reason = absl::StrCat("TCPX_THREADS is ", options.threads);
  } else if (budget.share / gpus < kPoolCpusMin) {
    plan->reason =
        absl::StrCat("fewer than ", kPoolCpusMin, " cpus for a ", gpus > 1 ? "gpu" : "rank", ": ", plan->reason);
  } else {
    // NCCL has a busy thread for each GPU.
    plan->threads = std::min(kThreadsPerDevice * devices, budget.share - gpus);
    if (plan->threads > kThreadsMax) {
      plan->threads = kThreadsMax;
      absl::StrAppend(&plan->reason, ", ", kThreadsMax, " threads at most");
    }
  }
}

// The NUMA node of the device that thread `index` is meant for.
int NodeOfThread(const CpuDemand& demand, int index, int threads) {
  const int devices = Size(demand.device_nodes);
  if (devices == 0) return -1;
  if (demand.gpus > 1) return demand.device_nodes[static_cast<size_t>(index) * demand.device_nodes.size() / threads];
  if (demand.first_device >= 0 && demand.first_device < devices) {
    return demand.device_nodes[static_cast<size_t>(demand.first_device)];
  }
  return devices == 1 ? demand.device_nodes[0] : -1;
}

std::vector<int> DevicesOn(const CpuDemand& demand, int node) {
  std::vector<int> devices;
  for (size_t i = 0; i < demand.device_nodes.size(); ++i) {
    if (demand.device_nodes[i] == node) devices.push_back(static_cast<int>(i));
  }
  return devices;
}

// The node's CPUs that this process may use; empty where they are too few for the threads, and NCCL's own, of all ranks
// whose devices are on the node.
std::vector<int> CpusOnNode(const CpuFacts& facts, const Budget& budget, const CpuDemand& demand, int node,
                            int threads) {
  if (node < 0 || static_cast<size_t>(node) >= facts.node_cpus.size()) return {};
  const std::vector<int> cpus = CommonCpus(facts.node_cpus[static_cast<size_t>(node)], budget.allowed);
  const int devices = Size(demand.device_nodes);
  const int here = Size(DevicesOn(demand, node));
  const int ranks = budget.own ? 1 : (facts.ranks_on_host * here + devices - 1) / devices;
  return Size(cpus) >= (threads + 1) * ranks ? cpus : std::vector<int>();
}

std::string PlaceText(const std::set<int>& nodes, const std::set<int>& unplaced, const Budget& budget) {
  const std::string rest = budget.allowed.empty() ? "" : absl::StrCat("on cpus ", FormatCpuList(budget.allowed));
  if (!nodes.empty()) {
    return absl::StrCat("; on NUMA node ", absl::StrJoin(nodes, ", "), " as the device", nodes.size() > 1 ? "s" : "",
                        unplaced.empty() || rest.empty() ? "" : absl::StrCat(" and ", rest));
  }
  if (rest.empty()) return "";
  const bool unknown = unplaced.count(-1) != 0;
  return absl::StrCat("; ", rest,
                      unknown ? ": the device's NUMA node is unknown"
                              : absl::StrCat(": too few of them on NUMA node ", absl::StrJoin(unplaced, ", ")));
}

// The kernel leaves out in silence what is not there, as long as something is.
void PlaceAsAsked(const CpuFacts& facts, const Options& options, ThreadPlan* plan) {
  const std::vector<int> asked = ParseCpuList(options.cpus).value_or(std::vector<int>());
  const std::vector<int>& there = facts.container_cpus;
  const std::vector<int> cpus = there.empty() ? asked : CommonCpus(asked, there);
  std::vector<int> missing;
  std::set_difference(asked.begin(), asked.end(), cpus.begin(), cpus.end(), std::back_inserter(missing));
  plan->places.assign(static_cast<size_t>(plan->threads), {cpus, {}, !cpus.empty()});
  absl::StrAppend(&plan->reason, "; TCPX_CPUS is ", options.cpus);
  if (missing.empty()) return;
  plan->warning = absl::StrCat("TCPX_CPUS is ", options.cpus, ", and this host or container has no CPU ",
                               FormatCpuList(missing), " (it has ", FormatCpuList(there), "): progress threads ",
                               cpus.empty() ? "are not pinned" : absl::StrCat("run on ", FormatCpuList(cpus)));
}

void Place(const CpuFacts& facts, const Budget& budget, const CpuDemand& demand, const Options& options,
           ThreadPlan* plan) {
  if (!options.cpus.empty()) {
    PlaceAsAsked(facts, options, plan);
    return;
  }
  std::map<int, int> threads_on;
  for (int i = 0; i < plan->threads; ++i) ++threads_on[NodeOfThread(demand, i, plan->threads)];
  std::set<int> nodes;
  std::set<int> unplaced;
  for (int i = 0; i < plan->threads; ++i) {
    const int node = NodeOfThread(demand, i, plan->threads);
    const std::vector<int> cpus = CpusOnNode(facts, budget, demand, node, threads_on[node]);
    (cpus.empty() ? unplaced : nodes).insert(node);
    plan->places.push_back(cpus.empty() ? ThreadPlace{budget.allowed, {}, false}
                                        : ThreadPlace{cpus, DevicesOn(demand, node), false});
  }
  absl::StrAppend(&plan->reason, PlaceText(nodes, unplaced, budget));
}

}  // namespace

ThreadPlan PlanThreads(const CpuFacts& facts, const CpuDemand& demand, const Options& options) {
  const Budget budget = BudgetOf(facts);
  ThreadPlan plan;
  Count(budget, demand, options, &plan);
  if (!plan.caller_driven()) Place(facts, budget, demand, options, &plan);
  return plan;
}

}  // namespace tcpx
