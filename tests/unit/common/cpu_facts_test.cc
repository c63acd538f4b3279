#include "common/cpu_facts.h"

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

CpuFacts FactsOf(const FakeTree& tree) { return ReadCpuFacts(tree.root(), From({})); }

void Status(const FakeTree& tree, const std::string& of, const std::string& cpus) {
  tree.File("proc/" + of + "/status", "Name:\tpython\nPPid:\t41\nCpus_allowed_list:\t" + cpus + "\nMems_allowed:\t1\n");
}

// Two EPYCs in NPS4, 8 ranks: NCCL calls us from a thread that it has bound to the GPU's node.
TEST(CpuFactsTest, AreTheContainersAndNotTheCallersOwn) {
  FakeTree tree;
  tree.File("proc/self/cgroup", "0::/\n");
  tree.File("sys/fs/cgroup/cpuset.cpus.effective", "0-127\n");
  tree.File("sys/devices/system/node/online", "0-1\n");
  tree.File("sys/devices/system/node/node0/cpulist", "0-63\n");
  tree.File("sys/devices/system/node/node1/cpulist", "64-127\n");
  Status(tree, "self", "16-31");
  Status(tree, "41", "0-127");
  Status(tree, "self/task/50", "0-99");
  Status(tree, "self/task/51", "16-31");
  const CpuFacts facts = FactsOf(tree);
  EXPECT_TRUE(facts.has_cpuset);
  EXPECT_EQ(FormatCpuList(facts.container_cpus), "0-127");
  EXPECT_EQ(FormatCpuList(facts.process_cpus), "0-99");
  EXPECT_EQ(FormatCpuList(facts.parent_cpus), "0-127");
  ASSERT_EQ(facts.node_cpus.size(), 2u);
  EXPECT_EQ(FormatCpuList(facts.node_cpus[1]), "64-127");
}

// The first thread bound to one core by OpenMP, each of the others to another.
TEST(CpuFactsTest, ThreadsThatBoundThemselvesAddUp) {
  FakeTree tree;
  for (int task = 0; task < 8; ++task) Status(tree, "self/task/" + std::to_string(50 + task), std::to_string(task));
  EXPECT_EQ(FormatCpuList(FactsOf(tree).process_cpus), "0-7");
}

TEST(CpuFactsTest, WhatCannotBeReadIsUnknown) {
  FakeTree tree;
  cpu_set_t own;
  CPU_ZERO(&own);
  ASSERT_EQ(sched_getaffinity(0, sizeof(own), &own), 0);
  const CpuFacts facts = FactsOf(tree);
  EXPECT_FALSE(facts.has_cpuset);
  EXPECT_TRUE(facts.container_cpus.empty());
  EXPECT_EQ(facts.process_cpus.size(), static_cast<size_t>(CPU_COUNT(&own)));
  EXPECT_TRUE(facts.parent_cpus.empty());
  EXPECT_EQ(facts.quota_cpus, 0);
  EXPECT_EQ(facts.ranks_on_host, 1);
  EXPECT_TRUE(facts.node_cpus.empty());
}

TEST(CpuFactsTest, ThisMachinesAreThere) {
  const CpuFacts facts = ReadCpuFacts();
  EXPECT_FALSE(facts.container_cpus.empty());
  EXPECT_EQ(CommonCpus(facts.process_cpus, facts.container_cpus), facts.process_cpus);
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

TEST(CpuFactsTest, TheTightestQuotaCounts) {
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
    EXPECT_DOUBLE_EQ(FactsOf(tree).quota_cpus, one.want) << one.name;
  }
}

struct CpusetCase {
  const char* name;
  std::vector<TreeFile> files;
  const char* want;
  bool has_cpuset;
};

TEST(CpuFactsTest, TheInnermostCpusetCounts) {
  const TreeFile online = {"sys/devices/system/cpu/online", "0-63\n"};
  const CpusetCase cases[] = {
      {"V2",
       {online, {"proc/self/cgroup", "0::/a\n"}, {"sys/fs/cgroup/a/cpuset.cpus.effective", "0-1\n"}},
       "0-1",
       true},
      {"V2WithoutTheController",
       {online, {"proc/self/cgroup", "0::/a/b\n"}, {"sys/fs/cgroup/a/cpuset.cpus.effective", "4-7\n"}},
       "4-7",
       true},
      {"V2Innermost",
       {{"proc/self/cgroup", "0::/a/b\n"},
        {"sys/fs/cgroup/a/b/cpuset.cpus.effective", "4\n"},
        {"sys/fs/cgroup/a/cpuset.cpus.effective", "4-7\n"}},
       "4",
       true},
      {"V2PathOfTheHost",
       {{"proc/self/cgroup", "0::/kubepods/pod7\n"}, {"sys/fs/cgroup/cpuset.cpus.effective", "0,2\n"}},
       "0,2",
       true},
      {"V1",
       {online,
        {"proc/self/cgroup", "4:cpuset:/a\n3:cpu:/b\n"},
        {"sys/fs/cgroup/cpuset/a/cpuset.effective_cpus", "8-9\n"}},
       "8-9",
       true},
      {"V1OfAnotherController",
       {online, {"proc/self/cgroup", "4:cpu:/a\n"}, {"sys/fs/cgroup/cpuset/a/cpuset.effective_cpus", "8-9\n"}},
       "0-63",
       false},
      {"None", {online, {"proc/self/cgroup", "0::/\n"}}, "0-63", false},
      {"Malformed",
       {online, {"proc/self/cgroup", "0::/\n"}, {"sys/fs/cgroup/cpuset.cpus.effective", "some\n"}},
       "0-63",
       false},
  };
  for (const CpusetCase& one : cases) {
    FakeTree tree;
    for (const TreeFile& file : one.files) tree.File(file.path, file.text);
    const CpuFacts facts = FactsOf(tree);
    EXPECT_EQ(FormatCpuList(facts.container_cpus), one.want) << one.name;
    EXPECT_EQ(facts.has_cpuset, one.has_cpuset) << one.name;
  }
}

TEST(CpuFactsTest, ARootMayEndInASlash) {
  FakeTree tree;
  tree.File("proc/self/cgroup", "0::/\n");
  tree.File("sys/fs/cgroup/cpu.max", "350000 100000\n");
  EXPECT_EQ(ReadCpuFacts(tree.root() + "/", From({})).quota_cpus, 3.5);
}

struct RanksCase {
  const char* name;
  Environment environment;
  int want;
  const char* source;
};

TEST(CpuFactsTest, RanksComeFromTheLauncher) {
  const RanksCase cases[] = {
      {"None", {}, 1, "assumed"},
      {"Torch", {{"LOCAL_WORLD_SIZE", "8"}}, 8, "LOCAL_WORLD_SIZE"},
      {"Slurm", {{"SLURM_NTASKS_PER_NODE", "4"}}, 4, "SLURM_NTASKS_PER_NODE"},
      {"SlurmRepeated", {{"SLURM_NTASKS_PER_NODE", "4(x2)"}}, 4, "SLURM_NTASKS_PER_NODE"},
      {"SlurmUneven", {{"SLURM_NTASKS_PER_NODE", "2(x2),8"}}, 8, "SLURM_NTASKS_PER_NODE"},
      {"SlurmsOwn", {{"SLURM_TASKS_PER_NODE", "8(x4)"}}, 8, "SLURM_TASKS_PER_NODE"},
      {"SlurmStep",
       {{"SLURM_STEP_TASKS_PER_NODE", "4"}, {"SLURM_TASKS_PER_NODE", "8"}},
       4,
       "SLURM_STEP_TASKS_PER_NODE"},
      {"Mpich", {{"MPI_LOCALNRANKS", "3"}}, 3, "MPI_LOCALNRANKS"},
      {"Mvapich", {{"MV2_COMM_WORLD_LOCAL_SIZE", "3"}}, 3, "MV2_COMM_WORLD_LOCAL_SIZE"},
      {"Hydra", {{"PMI_LOCAL_SIZE", "5"}}, 5, "PMI_LOCAL_SIZE"},
      {"Jsrun", {{"JSM_NAMESPACE_LOCAL_SIZE", "6"}}, 6, "JSM_NAMESPACE_LOCAL_SIZE"},
      {"MpirunInAJobOfSlurms",
       {{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}, {"SLURM_NTASKS_PER_NODE", "1"}, {"SLURM_TASKS_PER_NODE", "1"}},
       8,
       "OMPI"},
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
    const CpuFacts facts = ReadCpuFacts(tree.root(), From(one.environment));
    EXPECT_EQ(facts.ranks_on_host, one.want) << one.name;
    EXPECT_NE(facts.ranks_source.find(one.source), std::string::npos) << one.name << ": " << facts.ranks_source;
  }
}

struct BindCase {
  Environment environment;
  bool want;
};

TEST(CpuFactsTest, SlurmSaysWhetherItBoundItsTasks) {
  const BindCase cases[] = {
      {{{"SLURM_TASKS_PER_NODE", "4"}}, false},
      {{{"SLURM_TASKS_PER_NODE", "4"}, {"SLURM_CPU_BIND_TYPE", ""}}, false},
      {{{"SLURM_TASKS_PER_NODE", "4"}, {"SLURM_CPU_BIND_TYPE", "none"}}, false},
      {{{"SLURM_TASKS_PER_NODE", "4"}, {"SLURM_CPU_BIND_TYPE", "mask_cpu:"}}, true},
      {{{"SLURM_TASKS_PER_NODE", "1"}, {"SLURM_CPU_BIND_TYPE", "mask_cpu:"}, {"LOCAL_WORLD_SIZE", "8"}}, false},
  };
  FakeTree tree;
  for (const BindCase& one : cases) {
    EXPECT_EQ(ReadCpuFacts(tree.root(), From(one.environment)).launcher_binds, one.want);
  }
}

}  // namespace
}  // namespace tcpx
