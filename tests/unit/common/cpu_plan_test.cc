// The table of docs/cpus.md, and what the log says.
#include "common/cpu_plan.h"

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/cpu_facts.h"
#include "common/params.h"
#include "gtest/gtest.h"
#include "tests/unit/common/fake_tree.h"

namespace tcpx {
namespace {

using Environment = std::map<std::string, std::string>;

GetenvFunction From(const Environment& environment) {
  return [environment](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
}

// The columns of docs/cpus.md.
enum Column { kMachine, kNodes, kCpuset, kProcess, kParent, kQuota, kEnvironment, kGpus, kNics, kThreads, kColumns };

struct Machine {
  CpuFacts facts;
  CpuDemand demand;
  Options options;
};

std::vector<int> List(const std::string& text) {
  if (text == "none" || text == "unknown") return {};
  const auto cpus = ParseCpuList(text);
  EXPECT_TRUE(cpus.ok()) << cpus.status();
  return cpus.value_or(std::vector<int>());
}

int Number(absl::string_view text) {
  int value = 0;
  EXPECT_TRUE(absl::SimpleAtoi(text, &value)) << text;
  return value;
}

std::vector<std::vector<int>> Nodes(const std::string& text) {
  const std::vector<std::string> sizes = absl::StrSplit(text, " x ");
  std::vector<std::vector<int>> nodes(static_cast<size_t>(Number(sizes.at(0))));
  int cpu = 0;
  for (std::vector<int>& node : nodes) {
    for (int i = 0; i < Number(sizes.at(1)); ++i) node.push_back(cpu++);
  }
  return nodes;
}

Environment Variables(const std::string& text) {
  Environment environment;
  for (absl::string_view word : absl::StrSplit(text, ' ')) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(word, absl::MaxSplits('=', 1));
    if (!pair.second.empty()) environment[pair.first] = pair.second;
  }
  return environment;
}

CpuDemand Demand(const std::string& gpus, const std::string& nics) {
  CpuDemand demand;
  demand.gpus = Number(gpus);
  for (absl::string_view nic : absl::StrSplit(nics, ' ')) {
    if (absl::ConsumeSuffix(&nic, "*")) demand.first_device = static_cast<int>(demand.device_nodes.size());
    demand.device_nodes.push_back(nic == "-" ? -1 : Number(nic));
  }
  return demand;
}

Machine MachineOf(const std::vector<std::string>& row) {
  Machine machine;
  const FakeTree nothing;
  const Environment environment = Variables(row[kEnvironment]);
  std::vector<std::string> warnings;
  machine.facts = ReadCpuFacts(nothing.root(), From(environment));
  machine.facts.node_cpus = Nodes(row[kNodes]);
  machine.facts.has_cpuset = row[kCpuset] != "none";
  machine.facts.container_cpus = List(row[kCpuset]);
  if (!machine.facts.has_cpuset) {
    for (const auto& node : machine.facts.node_cpus) {
      machine.facts.container_cpus.insert(machine.facts.container_cpus.end(), node.begin(), node.end());
    }
  }
  machine.facts.process_cpus = List(row[kProcess]);
  machine.facts.parent_cpus = List(row[kParent]);
  if (row[kQuota] != "none") {
    EXPECT_TRUE(absl::SimpleAtod(row[kQuota], &machine.facts.quota_cpus));
  }
  machine.demand = Demand(row[kGpus], row[kNics]);
  machine.options = LoadOptions(From(environment), &warnings);
  EXPECT_TRUE(warnings.empty()) << absl::StrJoin(warnings, "\n");
  return machine;
}

// "4 on 0-15", "2 on 0-7, 2 on 8-15" or "caller-driven".
std::string Summary(const ThreadPlan& plan) {
  EXPECT_EQ(plan.caller_driven(), plan.threads == 0);
  EXPECT_EQ(plan.places.size(), static_cast<size_t>(plan.threads));
  std::vector<std::pair<std::string, int>> groups;
  for (const ThreadPlace& place : plan.places) {
    const std::string cpus = FormatCpuList(place.cpus);
    if (groups.empty() || groups.back().first != cpus) groups.emplace_back(cpus, 0);
    ++groups.back().second;
  }
  if (groups.empty()) return "caller-driven";
  return absl::StrJoin(groups, ", ", [](std::string* out, const std::pair<std::string, int>& group) {
    absl::StrAppend(out, group.second, " on ", group.first);
  });
}

std::vector<std::vector<std::string>> Rows() {
  std::vector<std::vector<std::string>> rows;
  std::ifstream file("docs/cpus.md");
  for (std::string line; std::getline(file, line);) {
    absl::string_view inside = line;
    if (!absl::ConsumePrefix(&inside, "| ") || !absl::ConsumeSuffix(&inside, " |")) continue;
    std::vector<std::string> row = absl::StrSplit(inside, " | ");
    if (row.size() == kColumns && row[kMachine] != "machine") rows.push_back(std::move(row));
  }
  return rows;
}

TEST(PlanThreadsTest, EveryMachineOfTheTable) {
  const std::vector<std::vector<std::string>> rows = Rows();
  EXPECT_GE(rows.size(), 20u) << "docs/cpus.md is not among the test's data, or its table has another form";
  for (const std::vector<std::string>& row : rows) {
    const Machine machine = MachineOf(row);
    const ThreadPlan plan = PlanThreads(machine.facts, machine.demand, machine.options);
    EXPECT_EQ(Summary(plan), row[kThreads]) << row[kMachine] << ": " << plan.reason;
    EXPECT_EQ(plan.reason.find('\n'), std::string::npos) << plan.reason;
  }
}

// A machine of one NUMA node with `cpus` CPUs and one device on it.
Machine Plain(int cpus) {
  Machine machine;
  machine.facts.has_cpuset = true;
  for (int cpu = 0; cpu < cpus; ++cpu) machine.facts.container_cpus.push_back(cpu);
  machine.facts.process_cpus = machine.facts.container_cpus;
  machine.facts.node_cpus = {machine.facts.container_cpus};
  machine.demand.device_nodes = {0};
  return machine;
}

ThreadPlan PlanOf(const Machine& machine) { return PlanThreads(machine.facts, machine.demand, machine.options); }

struct CountCase {
  int cpus;
  int option;
  int threads;
};

TEST(PlanThreadsTest, FollowsTheCpusUnlessSet) {
  const CountCase cases[] = {
      {1, -1, 0}, {2, -1, 0}, {3, -1, 2}, {4, -1, 3}, {5, -1, 4}, {64, -1, 4}, {64, 0, 0}, {1, 1, 1}, {1, 8, 8},
  };
  for (const CountCase& one : cases) {
    Machine machine = Plain(one.cpus);
    machine.options.threads = one.option;
    const ThreadPlan plan = PlanOf(machine);
    EXPECT_EQ(plan.threads, one.threads) << one.cpus << " " << one.option;
    EXPECT_EQ(plan.caller_driven(), one.threads == 0) << one.cpus << " " << one.option;
    const char* reason = one.option >= 0 ? "TCPX_THREADS is" : "quota none";
    EXPECT_NE(plan.reason.find(reason), std::string::npos) << plan.reason;
  }
}

TEST(PlanThreadsTest, TheReasonSaysWhatDecided) {
  Machine machine = Plain(64);
  machine.facts.ranks_on_host = 8;
  machine.facts.ranks_source = "LOCAL_WORLD_SIZE";
  EXPECT_EQ(PlanOf(machine).reason,
            "64 cpus (cpuset 64, process 64, quota none) / 8 ranks (LOCAL_WORLD_SIZE); on NUMA node 0 as the device");
  machine.facts.quota_cpus = 7.5;
  EXPECT_EQ(PlanOf(machine).reason,
            "fewer than 3 cpus for a rank: 7 cpus (cpuset 64, process 64, quota 7.50) / 8 ranks (LOCAL_WORLD_SIZE)");
  machine.facts.quota_cpus = 0;
  machine.facts.launcher_binds = true;
  machine.facts.process_cpus = {0, 1, 2, 3};
  EXPECT_EQ(PlanOf(machine).reason,
            "4 cpus (cpuset 64, process 4, quota none), this rank's own of 8 ranks (LOCAL_WORLD_SIZE); on NUMA node 0 "
            "as the device");
  machine.facts.container_cpus.clear();
  machine.facts.has_cpuset = false;
  EXPECT_NE(PlanOf(machine).reason.find("(online unknown, process 4,"), std::string::npos) << PlanOf(machine).reason;
  machine = Plain(64);
  machine.demand.gpus = 10;
  machine.demand.device_nodes = std::vector<int>(10, -1);
  EXPECT_EQ(PlanOf(machine).reason,
            "64 cpus (cpuset 64, process 64, quota none) / 1 rank (assumed) for 10 gpus on 10 devices, 32 threads at "
            "most; on cpus 0-63: the device's NUMA node is unknown");
}

// Lanes of a device find the threads of its node by this.
TEST(PlanThreadsTest, CpusThatAreNotThereAreNamed) {
  const struct {
    const char* asked;
    std::vector<int> container;
    const char* places;
    const char* warning;
  } cases[] = {
      {"2-9", {0, 1, 2, 3}, "2 on 2-3", "has no CPU 4-9 (it has 0-3): progress threads run on 2-3"},
      {"8-9", {0, 1, 2, 3}, "2 on ", "has no CPU 8-9 (it has 0-3): progress threads are not pinned"},
      {"0-3", {0, 1, 2, 3}, "2 on 0-3", ""},
      {"2-9", {}, "2 on 2-9", ""},
  };
  for (const auto& one : cases) {
    CpuFacts facts;
    facts.container_cpus = one.container;
    Options options;
    options.threads = 2;
    options.cpus = one.asked;
    const ThreadPlan plan = PlanThreads(facts, CpuDemand(), options);
    EXPECT_EQ(Summary(plan), one.places);
    EXPECT_EQ(plan.warning.empty(), *one.warning == '\0') << plan.warning;
    EXPECT_NE(plan.warning.find(one.warning), std::string::npos) << plan.warning;
  }
}

TEST(PlanThreadsTest, PlacesNameTheDevicesOfTheirNode) {
  Machine machine = Plain(32);
  machine.facts.node_cpus = {List("0-15"), List("16-31")};
  machine.demand = {3, {0, 1, 1}, 1};
  const ThreadPlan plan = PlanOf(machine);
  ASSERT_EQ(plan.threads, 12);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(plan.places[i].devices, i < 4 ? std::vector<int>({0}) : std::vector<int>({1, 2})) << i;
  }
  machine.options.cpus = "1,2";
  for (const ThreadPlace& place : PlanOf(machine).places) {
    EXPECT_TRUE(place.devices.empty());
    EXPECT_TRUE(place.asked);
  }
}

TEST(PlanThreadsTest, UnknownFactsDoNotLimit) {
  Options options;
  options.threads = 2;
  const ThreadPlan plan = PlanThreads(CpuFacts(), CpuDemand(), options);
  ASSERT_EQ(plan.places.size(), 2u);
  EXPECT_TRUE(plan.places[0].cpus.empty());
}

}  // namespace
}  // namespace tcpx
