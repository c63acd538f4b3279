#include "common/cpu_budget.h"

#include <sched.h>

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/common/fake_tree.h"

namespace tcpx {
namespace {

using Environment = std::map<std::string, std::string>;

GetenvFunction From(const Environment& environment) {
  return [&environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

int OwnAffinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return CPU_COUNT(&set);
}

double QuotaOf(const FakeTree& tree) { return ReadCpuBudget(tree.root(), From({})).quota_cpus; }

TEST(CpuBudgetTest, WithoutCgroupsTheAffinityMaskCounts) {
  FakeTree tree;
  const CpuBudget budget = ReadCpuBudget(tree.root(), From({}));
  EXPECT_EQ(budget.affinity_cpus, OwnAffinity());
  EXPECT_EQ(budget.quota_cpus, 0);
  EXPECT_EQ(budget.usable, OwnAffinity());
  EXPECT_EQ(budget.ranks_on_host, 1);
  EXPECT_EQ(budget.budget, OwnAffinity());
  EXPECT_NE(budget.source.find("quota none"), std::string::npos) << budget.source;
}

TEST(CpuBudgetTest, TheAffinityMaskIsReadAnew) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  FakeTree tree;
  EXPECT_EQ(ReadCpuBudget(tree.root(), From({})).affinity_cpus, 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}

struct TreeFile {
  const char* path;
  const char* text;
};

struct QuotaCase {
  const char* name;
  std::vector<TreeFile> files;
  double want;
};

TEST(CpuBudgetTest, TheTightestQuotaCounts) {
  const QuotaCase cases[] = {
      {"V2", {{"proc/self/cgroup", "0::/a/b\n"}, {"sys/fs/cgroup/a/b/cpu.max", "150000 100000\n"}}, 1.5},
      {"V2Max", {{"proc/self/cgroup", "0::/a\n"}, {"sys/fs/cgroup/a/cpu.max", "max 100000\n"}}, 0},
      {"V2ParentIsTighter",
       {{"proc/self/cgroup", "0::/a/b\n"},
        {"sys/fs/cgroup/a/b/cpu.max", "400000 100000\n"},
        {"sys/fs/cgroup/a/cpu.max", "100000 50000\n"}},
       2},
      {"V2ChildIsTighter",
       {{"proc/self/cgroup", "0::/a/b\n"},
        {"sys/fs/cgroup/a/b/cpu.max", "50000 100000\n"},
        {"sys/fs/cgroup/a/cpu.max", "max 100000\n"}},
       0.5},
      {"V2NamespaceRoot", {{"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpu.max", "300000 100000\n"}}, 3},
      {"V2PathOfTheHost",
       {{"proc/self/cgroup", "0::/kubepods/pod7/c1\n"}, {"sys/fs/cgroup/cpu.max", "300000 100000\n"}},
       3},
      {"V2OutsideTheNamespace",
       {{"proc/self/cgroup", "0::/../other\n"},
        {"sys/fs/cgroup/cpu.max", "300000 100000\n"},
        {"sys/fs/other/cpu.max", "100000 100000\n"}},
       3},
      {"V1",
       {{"proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a/b\n"},
        {"sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "250000\n"},
        {"sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n"}},
       2.5},
      {"V1ByTheShortName",
       {{"proc/self/cgroup", "4:cpu,cpuacct:/a\n"},
        {"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000\n"},
        {"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}},
       2},
      {"V1Unlimited",
       {{"proc/self/cgroup", "4:cpu:/a\n"},
        {"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n"},
        {"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"}},
       0},
      {"V1OfAnotherController",
       {{"proc/self/cgroup", "4:cpuset:/a\n"},
        {"sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "100000\n"},
        {"sys/fs/cgroup/cpuset/cpu.cfs_period_us", "100000\n"}},
       0},
      {"Hybrid",
       {{"proc/self/cgroup", "4:cpu:/a\n0::/b\n"},
        {"sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000\n"},
        {"sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n"},
        {"sys/fs/cgroup/unified/b/cpu.max", "100000 100000\n"}},
       1},
      {"Malformed", {{"proc/self/cgroup", "nonsense\n0::/a\n"}, {"sys/fs/cgroup/a/cpu.max", "lots\n"}}, 0},
      {"ZeroPeriod", {{"proc/self/cgroup", "0::/a\n"}, {"sys/fs/cgroup/a/cpu.max", "100000 0\n"}}, 0},
  };
  for (const QuotaCase& one : cases) {
    FakeTree tree;
    for (const TreeFile& file : one.files) tree.File(file.path, file.text);
    EXPECT_DOUBLE_EQ(QuotaOf(tree), one.want) << one.name;
  }
}

TEST(CpuBudgetTest, AQuotaBelowTheMaskIsRoundedDownButNotToZero) {
  FakeTree tree;
  tree.File("proc/self/cgroup", "0::/\n");
  tree.File("sys/fs/cgroup/cpu.max", "50000 100000\n");
  EXPECT_EQ(ReadCpuBudget(tree.root(), From({})).usable, 1);
  tree.File("sys/fs/cgroup/cpu.max", "100000000 100000\n");
  EXPECT_EQ(ReadCpuBudget(tree.root(), From({})).usable, OwnAffinity());
  EXPECT_EQ(ReadCpuBudget(tree.root() + "/", From({})).quota_cpus, 1000);
}

struct RanksCase {
  const char* name;
  Environment environment;
  int want;
  const char* source;
};

TEST(CpuBudgetTest, RanksComeFromTheLauncher) {
  const RanksCase cases[] = {
      {"None", {}, 1, "assumed"},
      {"Torch", {{"LOCAL_WORLD_SIZE", "8"}}, 8, "LOCAL_WORLD_SIZE"},
      {"Slurm", {{"SLURM_NTASKS_PER_NODE", "4"}}, 4, "SLURM_NTASKS_PER_NODE"},
      {"SlurmRepeated", {{"SLURM_NTASKS_PER_NODE", "4(x2)"}}, 4, "SLURM_NTASKS_PER_NODE"},
      {"SlurmUneven", {{"SLURM_NTASKS_PER_NODE", "2(x2),8"}}, 8, "SLURM_NTASKS_PER_NODE"},
      {"OpenMpi", {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}, 2, "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"InThisOrder",
       {{"LOCAL_WORLD_SIZE", "8"}, {"SLURM_NTASKS_PER_NODE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       8,
       "LOCAL_WORLD_SIZE"},
      {"MalformedFallsThrough", {{"LOCAL_WORLD_SIZE", "many"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}}, 2, "OMPI"},
      {"ZeroFallsThrough", {{"LOCAL_WORLD_SIZE", "0"}}, 1, "assumed"},
      {"EmptyFallsThrough", {{"LOCAL_WORLD_SIZE", ""}}, 1, "assumed"},
      {"NegativeFallsThrough", {{"LOCAL_WORLD_SIZE", "-4"}}, 1, "assumed"},
      {"HalfRepeat", {{"SLURM_NTASKS_PER_NODE", "4(x"}}, 1, "assumed"},
  };
  FakeTree tree;
  for (const RanksCase& one : cases) {
    const CpuBudget budget = ReadCpuBudget(tree.root(), From(one.environment));
    EXPECT_EQ(budget.ranks_on_host, one.want) << one.name;
    EXPECT_EQ(budget.budget, budget.usable / one.want) << one.name;
    EXPECT_NE(budget.source.find(one.source), std::string::npos) << one.name << ": " << budget.source;
  }
}

struct PlanCase {
  int budget;
  int option;
  int threads;
};

TEST(PlanThreadsTest, FollowsTheBudgetUnlessTold) {
  const PlanCase cases[] = {
      {0, -1, 0},  {1, -1, 0}, {2, -1, 0}, {3, -1, 2}, {4, -1, 3}, {5, -1, 4},
      {64, -1, 4}, {64, 0, 0}, {1, 1, 1},  {1, 8, 8},  {0, 2, 2},
  };
  for (const PlanCase& one : cases) {
    CpuBudget budget;
    budget.budget = one.budget;
    budget.source = "the source";
    const ThreadPlan plan = PlanThreads(budget, one.option);
    EXPECT_EQ(plan.threads, one.threads) << one.budget << " " << one.option;
    EXPECT_EQ(plan.caller_driven, one.threads == 0) << one.budget << " " << one.option;
    const char* reason = one.option >= 0 ? "TCPX_THREADS" : "the source";
    EXPECT_NE(plan.reason.find(reason), std::string::npos) << plan.reason;
  }
}

}  // namespace
}  // namespace tcpx
