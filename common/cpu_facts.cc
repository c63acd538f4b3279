#include "common/cpu_facts.h"

#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/small_file.h"

namespace tcpx {
namespace {

// More would take milliseconds; the launcher's bound shows in the first few.
constexpr int kTasksMax = 256;
constexpr int kMaxCpus = 1 << 16;

bool ParseCpu(absl::string_view text, int* cpu) { return absl::SimpleAtoi(text, cpu) && *cpu >= 0 && *cpu < kMaxCpus; }

bool AppendCpuRange(absl::string_view part, std::vector<int>* cpus) {
  const size_t dash = part.find('-');
  int first = 0;
  if (!ParseCpu(part.substr(0, dash), &first)) return false;
  int last = first;
  if (dash != absl::string_view::npos && !ParseCpu(part.substr(dash + 1), &last)) return false;
  if (last < first) return false;
  for (int cpu = first; cpu <= last; ++cpu) cpus->push_back(cpu);
  return true;
}

// Empty where the file can't be read.
std::vector<int> ReadCpuList(const std::string& path) {
  return ParseCpuList(absl::StripAsciiWhitespace(ReadSmallFile(path).value_or(""))).value_or(std::vector<int>());
}

struct Cgroup {
  std::string folder;
  bool v2 = false;
};

// Appends the folders of one hierarchy that hold this process, the innermost first. In a container `path` may be the
// host's and not exist below `mount`, whose root then holds the container's own limit.
void AddFolders(const std::string& mount, absl::string_view path, bool v2, std::vector<Cgroup>* cgroups) {
  if (!absl::StrContains(path, "..")) {  // else outside our cgroup namespace: nothing to see
    absl::string_view below = absl::StripSuffix(path, "/");
    while (!below.empty()) {
      cgroups->push_back({absl::StrCat(mount, below), v2});
      const size_t slash = below.rfind('/');
      below = below.substr(0, slash == absl::string_view::npos ? 0 : slash);
    }
  }
  cgroups->push_back({mount, v2});
}

// Hierarchy after hierarchy. Each line of /proc/self/cgroup is "ID:CONTROLLERS:PATH"; version 2 has ID 0 and no
// controllers (cgroups(7)).
std::vector<Cgroup> CgroupsOf(const std::string& root, absl::string_view controller) {
  std::vector<Cgroup> cgroups;
  const std::string base = root + "/sys/fs/cgroup";
  const std::string text = ReadSmallFile(root + "/proc/self/cgroup").value_or("");
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
    if (fields[0] == "0" && fields[1].empty()) {
      AddFolders(base, fields[2], true, &cgroups);
      AddFolders(base + "/unified", fields[2], true, &cgroups);
    } else if (std::find(controllers.begin(), controllers.end(), controller) != controllers.end()) {
      AddFolders(absl::StrCat(base, "/", fields[1]), fields[2], false, &cgroups);
      AddFolders(absl::StrCat(base, "/", controller), fields[2], false, &cgroups);
    }
  }
  return cgroups;
}

// The CPUs that a quota allows; 0 is no quota. "max 100000" and "150000 100000".
double ParseCpuMax(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  double quota = 0;
  double period = 100000;
  if (words.empty() || !absl::SimpleAtod(words[0], &quota) || quota <= 0) return 0;
  if (words.size() > 1 && (!absl::SimpleAtod(words[1], &period) || period <= 0)) return 0;
  return quota / period;
}

double ReadQuota(const Cgroup& cgroup) {
  const auto read = [&cgroup](const char* file) { return ReadSmallFile(cgroup.folder + file).value_or("none"); };
  if (cgroup.v2) return ParseCpuMax(read("/cpu.max"));
  return ParseCpuMax(absl::StrCat(read("/cpu.cfs_quota_us"), " ", read("/cpu.cfs_period_us")));  // -1 is no quota
}

double TightestQuota(const std::string& root) {
  double tightest = 0;
  for (const Cgroup& cgroup : CgroupsOf(root, "cpu")) {
    const double quota = ReadQuota(cgroup);
    if (quota > 0 && (tightest == 0 || quota < tightest)) tightest = quota;
  }
  return tightest;
}

// An effective cpuset lies within its parents': the innermost folder that has one says all.
std::vector<int> Cpuset(const std::string& root) {
  for (const Cgroup& cgroup : CgroupsOf(root, "cpuset")) {
    std::vector<int> cpus =
        ReadCpuList(cgroup.folder + (cgroup.v2 ? "/cpuset.cpus.effective" : "/cpuset.effective_cpus"));
    if (!cpus.empty()) return cpus;
  }
  return {};
}

// The CPUs that the status file in this folder of /proc allows.
std::vector<int> AllowedCpus(const std::string& folder) {
  const std::string text = ReadSmallFile(folder + "/status").value_or("");
  return ParseCpuList(ValueIn(text, "Cpus_allowed_list:")).value_or(std::vector<int>());
}

// The mask may be wider than a cpu_set_t.
std::vector<int> CallersCpus() {
  std::vector<cpu_set_t> mask(kMaxCpus / CPU_SETSIZE);
  const size_t bytes = mask.size() * sizeof(cpu_set_t);
  std::vector<int> cpus;
  if (sched_getaffinity(0, bytes, mask.data()) != 0) return cpus;
  for (int cpu = 0; cpu < kMaxCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, bytes, mask.data())) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> ProcessCpus(const std::string& root) {
  std::vector<int> all;
  const std::string folder = root + "/proc/self/task";
  for (const int task : NumbersIn(folder, kTasksMax)) {
    const std::vector<int> before = std::move(all);
    const std::vector<int> cpus = AllowedCpus(absl::StrCat(folder, "/", task));
    all.clear();
    std::set_union(before.begin(), before.end(), cpus.begin(), cpus.end(), std::back_inserter(all));
  }
  return all.empty() ? CallersCpus() : all;
}

// Empty for a parent outside the container, whose number reads as 0.
std::vector<int> ParentCpus(const std::string& root) {
  const std::string text = ReadSmallFile(root + "/proc/self/status").value_or("");
  int parent = 0;
  if (!absl::SimpleAtoi(ValueIn(text, "PPid:"), &parent) || parent < 1) return {};
  return AllowedCpus(absl::StrCat(root, "/proc/", parent));
}

std::vector<std::vector<int>> NodeCpus(const std::string& root) {
  const std::string folder = root + "/sys/devices/system/node";
  std::vector<std::vector<int>> nodes;
  for (int node : ReadCpuList(folder + "/online")) {
    nodes.resize(static_cast<size_t>(node) + 1);
    nodes.back() = ReadCpuList(absl::StrCat(folder, "/node", node, "/cpulist"));
  }
  return nodes;
}

// The largest number of "4", "4(x2)" and "4(x2),3" (Slurm's form for nodes that differ); 0 when malformed.
int ParseRanks(absl::string_view text) {
  int ranks = 0;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t repeat = part.find("(x");
    if (repeat != absl::string_view::npos) {
      int nodes = 0;
      absl::string_view inside = part.substr(repeat + 2);
      if (!absl::ConsumeSuffix(&inside, ")") || !absl::SimpleAtoi(inside, &nodes) || nodes < 1) return 0;
    }
    int value = 0;
    if (!absl::SimpleAtoi(part.substr(0, repeat), &value) || value < 1) return 0;
    ranks = std::max(ranks, value);
  }
  return ranks;
}

// The innermost launcher first: torchrun and mpirun run inside a job of Slurm's, whose variables they pass on.
void ReadLauncher(const GetenvFunction& getenv_fn, CpuFacts* facts) {
  constexpr const char* kVariables[] = {
      "LOCAL_WORLD_SIZE",            // torchrun
      "OMPI_COMM_WORLD_LOCAL_SIZE",  // Open MPI
      "MPI_LOCALNRANKS",             // MPICH, Intel MPI
      "MV2_COMM_WORLD_LOCAL_SIZE",   // MVAPICH2
      "PMI_LOCAL_SIZE",              // Hydra, Cray
      "JSM_NAMESPACE_LOCAL_SIZE",    // jsrun
      "SLURM_STEP_TASKS_PER_NODE",
      "SLURM_NTASKS_PER_NODE",
      "SLURM_TASKS_PER_NODE",
  };
  const auto read = [&](const char* name) {
    return absl::NullSafeStringView(getenv_fn ? getenv_fn(name) : getenv(name));
  };
  for (const char* variable : kVariables) {
    const int ranks = ParseRanks(read(variable));
    if (ranks < 1) continue;
    facts->ranks_on_host = ranks;
    facts->ranks_source = variable;
    break;
  }
  // Slurm bound its own tasks, which torchrun's ranks share.
  const absl::string_view bind = read("SLURM_CPU_BIND_TYPE");
  facts->launcher_binds = absl::StartsWith(facts->ranks_source, "SLURM_") && !bind.empty() && bind != "none";
}

}  // namespace

absl::StatusOr<std::vector<int>> ParseCpuList(absl::string_view text) {
  std::vector<int> cpus;
  if (text.empty()) return cpus;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    if (!AppendCpuRange(part, &cpus)) {
      return absl::InvalidArgumentError(absl::StrCat("not a list of cpus like 0-3,7: \"", text, "\""));
    }
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string FormatCpuList(const std::vector<int>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    absl::StrAppend(&text, text.empty() ? "" : ",", cpus[i]);
    if (last > i) absl::StrAppend(&text, "-", cpus[last]);
    i = last + 1;
  }
  return text;
}

std::vector<int> CommonCpus(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

CpuFacts ReadCpuFacts(const std::string& root, const GetenvFunction& getenv_fn) {
  const std::string base(absl::StripSuffix(root, "/"));
  CpuFacts facts;
  facts.container_cpus = Cpuset(base);
  facts.has_cpuset = !facts.container_cpus.empty();
  if (!facts.has_cpuset) facts.container_cpus = ReadCpuList(base + "/sys/devices/system/cpu/online");
  facts.process_cpus = ProcessCpus(base);
  facts.parent_cpus = ParentCpus(base);
  facts.quota_cpus = TightestQuota(base);
  facts.node_cpus = NodeCpus(base);
  ReadLauncher(getenv_fn, &facts);
  return facts;
}

}  // namespace tcpx
