#include "common/cpu_budget.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/cpu_list.h"
#include "common/small_file.h"

namespace tcpx {
namespace {

// Below this many CPUs for one rank a progress thread would not have a core of its own (docs/architecture.md).
constexpr int kPoolBudgetMin = 3;
constexpr int kPoolThreadsMax = 4;

// The mask may be wider than cpu_set_t: sched_getaffinity(2) then gives EINVAL.
int AffinityCpus() {
  for (int cpus = 1024; cpus <= kMaxCpus; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    CPU_ZERO_S(bytes, set);
    const int result = sched_getaffinity(0, bytes, set);
    const int err = errno;
    const int count = result == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (result == 0) return std::max(1, count);
    if (err != EINVAL) return 1;
  }
  return 1;
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

double QuotaV2(const std::string& folder) {
  const std::optional<std::string> text = ReadSmallFile(folder + "/cpu.max");
  return text.has_value() ? ParseCpuMax(*text) : 0;
}

double QuotaV1(const std::string& folder) {
  const std::optional<std::string> quota = ReadSmallFile(folder + "/cpu.cfs_quota_us");
  const std::optional<std::string> period = ReadSmallFile(folder + "/cpu.cfs_period_us");
  if (!quota.has_value() || !period.has_value()) return 0;
  return ParseCpuMax(absl::StrCat(*quota, " ", *period));  // -1 is no quota
}

double Tighter(double a, double b) {
  if (a <= 0 || b <= 0) return std::max(a, b);
  return std::min(a, b);
}

// The tightest quota from `path` up to the root of the hierarchy mounted at `mount`. In a container the path may be the
// host's and not exist below the mount; its root then holds the container's own limit.
double TightestQuota(const std::string& mount, absl::string_view path, double (*read)(const std::string&)) {
  double quota = 0;
  if (path.find("..") == absl::string_view::npos) {  // outside our cgroup namespace: nothing to see
    std::string below(absl::StripSuffix(path, "/"));
    while (!below.empty()) {
      quota = Tighter(quota, read(mount + below));
      const size_t slash = below.rfind('/');
      below.resize(slash == std::string::npos ? 0 : slash);
    }
  }
  return Tighter(quota, read(mount));
}

// One line of /proc/self/cgroup: "ID:CONTROLLERS:PATH"; version 2 has ID 0 and no controllers (cgroups(7)).
double QuotaOfLine(const std::string& root, absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
  if (fields.size() != 3) return 0;
  const std::string base = root + "/sys/fs/cgroup";
  if (fields[0] == "0" && fields[1].empty()) {
    return Tighter(TightestQuota(base, fields[2], &QuotaV2), TightestQuota(base + "/unified", fields[2], &QuotaV2));
  }
  const std::vector<absl::string_view> controllers = absl::StrSplit(fields[1], ',');
  if (std::find(controllers.begin(), controllers.end(), "cpu") == controllers.end()) return 0;
  const double joined = TightestQuota(absl::StrCat(base, "/", fields[1]), fields[2], &QuotaV1);
  return joined > 0 ? joined : TightestQuota(base + "/cpu", fields[2], &QuotaV1);
}

double QuotaCpus(const std::string& root) {
  const std::optional<std::string> text = ReadSmallFile(root + "/proc/self/cgroup");
  if (!text.has_value()) return 0;
  double quota = 0;
  for (absl::string_view line : absl::StrSplit(*text, '\n', absl::SkipEmpty())) {
    quota = Tighter(quota, QuotaOfLine(root, line));
  }
  return quota;
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

void ReadRanks(const GetenvFunction& getenv_fn, CpuBudget* budget, std::string* name) {
  for (const char* variable : {"LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    const char* text = getenv_fn ? getenv_fn(variable) : getenv(variable);
    const int ranks = text == nullptr ? 0 : ParseRanks(text);
    if (ranks < 1) continue;
    budget->ranks_on_host = ranks;
    *name = variable;
    return;
  }
  *name = "assumed";
}

std::string Plural(int count, absl::string_view noun) { return absl::StrCat(count, " ", noun, count == 1 ? "" : "s"); }

}  // namespace

CpuBudget ReadCpuBudget(const std::string& root, const GetenvFunction& getenv_fn) {
  CpuBudget result;
  std::string ranks_source;
  result.affinity_cpus = AffinityCpus();
  result.quota_cpus = QuotaCpus(std::string(absl::StripSuffix(root, "/")));
  ReadRanks(getenv_fn, &result, &ranks_source);
  result.usable = result.affinity_cpus;
  if (result.quota_cpus > 0 && result.quota_cpus < result.usable) {
    result.usable = std::max(1, static_cast<int>(result.quota_cpus));
  }
  result.budget = result.usable / result.ranks_on_host;
  const std::string quota = result.quota_cpus > 0 ? absl::StrFormat("%.2f", result.quota_cpus) : "none";
  result.source = absl::StrCat(Plural(result.usable, "cpu"), " (affinity ", result.affinity_cpus, ", quota ", quota,
                               ") / ", Plural(result.ranks_on_host, "rank"), " (", ranks_source, ")");
  return result;
}

ThreadPlan PlanThreads(const CpuBudget& budget, int threads_option) {
  ThreadPlan plan;
  if (threads_option >= 0) {
    plan.threads = threads_option;
    plan.reason = absl::StrCat("TCPX_THREADS is ", threads_option);
  } else if (budget.budget < kPoolBudgetMin) {
    plan.reason = absl::StrCat("fewer than ", kPoolBudgetMin, " cpus for a rank: ", budget.source);
  } else {
    plan.threads = std::min(kPoolThreadsMax, budget.budget - 1);
    plan.reason = budget.source;
  }
  plan.caller_driven = plan.threads == 0;
  return plan;
}

}  // namespace tcpx
