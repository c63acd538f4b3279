// Networks, jobs and scenarios are what they say.
#include "bench/fabric/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tcpx {
namespace fabric {
namespace {

using Kind = TopologySpec::Kind;

std::set<int> Crossed(const TopologySpec& spec, int from, int to, uint64_t port, int rail = 0) {
  MaxMin links;
  const Topology topology(spec, &links);
  Flow flow;
  topology.Route(from, to, rail, port, &flow);
  return {flow.links.begin(), flow.links.begin() + flow.count};
}

TopologySpec Leaves() {
  TopologySpec spec;
  spec.kind = Kind::kLeafSpine;
  spec.hosts = 8;
  spec.leaf_hosts = 4;
  spec.spines = 4;
  return spec;
}

TEST(TopologyTest, WithinALeafOnlyTheInterfacesAreCrossed) {
  EXPECT_EQ(2u, Crossed(Leaves(), 0, 3, 5).size());
  EXPECT_EQ(4u, Crossed(Leaves(), 0, 4, 5).size());
}

TEST(TopologyTest, ThePortChoosesTheSpineAndDirectionsShareNothing) {
  const std::set<int> one = Crossed(Leaves(), 0, 4, 1), same = Crossed(Leaves(), 0, 4, 5);
  const std::set<int> other = Crossed(Leaves(), 0, 4, 2), back = Crossed(Leaves(), 4, 0, 1);
  EXPECT_EQ(one, same);
  std::vector<int> shared;
  std::set_intersection(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(shared));
  EXPECT_EQ(2u, shared.size()) << "the interfaces";
  shared.clear();
  std::set_intersection(one.begin(), one.end(), back.begin(), back.end(), std::back_inserter(shared));
  EXPECT_TRUE(shared.empty());
}

TEST(TopologyTest, RailsShareNothing) {
  TopologySpec spec;
  spec.kind = Kind::kRails;
  spec.rails = 2;
  const std::set<int> one = Crossed(spec, 0, 1, 1, 0), other = Crossed(spec, 0, 1, 1, 1);
  for (int link : one) EXPECT_EQ(0u, other.count(link));
}

TEST(TopologyTest, WhatLeavesALeafIsWhatOversubscriptionLeaves) {
  TopologySpec spec = Leaves();
  spec.oversubscription = 2;
  MaxMin links;
  const Topology topology(spec, &links);
  std::vector<Flow> flows;
  for (int host = 0; host < 4; ++host) {
    for (uint64_t port = 0; port < 4; ++port) {
      flows.emplace_back();
      topology.Route(host, 4 + host, 0, port, &flows.back());
    }
  }
  links.Solve(&flows);
  double sum = 0;
  for (const Flow& flow : flows) sum += flow.rate;
  EXPECT_DOUBLE_EQ(4 * spec.nic / 2, sum);
}

TEST(JobTest, EachHostOfARingSendsAndReceivesOncePerChannel) {
  const Job job = Ring({{3, 1, 2}, 4, 2}, 800, 0);
  std::map<int, int> sends, receives;
  for (const Job::Link& link : job.links) ++sends[link.ends.from], ++receives[link.ends.to];
  for (int host : {1, 2, 3}) {
    EXPECT_EQ(4, sends[host]);
    EXPECT_EQ(4, receives[host]);
  }
  EXPECT_EQ(4, job.groups);
  EXPECT_DOUBLE_EQ(2 * 800 / 4, job.bytes);
}

TEST(JobTest, TreesReachAllHostsInBothDirections) {
  const Job job = Trees(7, 100, 0);
  EXPECT_EQ(2u * 2 * 6, job.links.size());
  std::set<int> hosts;
  for (const Job::Link& link : job.links) hosts.insert(link.ends.from);
  EXPECT_EQ(7u, hosts.size());
}

TEST(JobTest, AllToAllHasEachPairOnce) {
  const Job job = AllToAll(8, 16, 100, 0);
  std::set<std::pair<int, int>> pairs;
  for (const Job::Link& link : job.links) {
    EXPECT_NE(link.ends.from, link.ends.to);
    pairs.insert({link.ends.from, link.ends.to});
  }
  EXPECT_EQ(8u * 7, pairs.size());
  EXPECT_EQ(pairs.size(), job.links.size());
}

// Leaves whose links to the spines a job uses, in either direction.
std::set<int> LeavesCrossed(const Scenario& scenario, const Job& job) {
  std::set<int> leaves;
  for (const Job::Link& link : job.links) {
    const int from = link.ends.from / scenario.topology.leaf_hosts, to = link.ends.to / scenario.topology.leaf_hosts;
    if (from != to) leaves.insert({from, to});
  }
  return leaves;
}

TEST(ScenarioTest, TwoJobsShareTheLinksOfAllLeavesAndNoHost) {
  for (int hosts : {8, 64, 512}) {
    for (const Scenario& scenario : Scenarios(hosts)) {
      if (scenario.name != "two-jobs") continue;
      std::set<int> seen;
      for (const Job& job : scenario.jobs) {
        const int leaves = hosts / scenario.topology.leaf_hosts;
        EXPECT_EQ(static_cast<size_t>(leaves), LeavesCrossed(scenario, job).size()) << hosts;
        std::set<int> own;
        for (const Job::Link& link : job.links) own.insert(link.ends.from);
        EXPECT_EQ(static_cast<size_t>(hosts) / 2, own.size());
        for (int host : own) EXPECT_TRUE(seen.insert(host).second) << host;
      }
    }
  }
}

TEST(ScenarioTest, HostsAndNamesAreAsTheySay) {
  std::set<std::string> names;
  for (const Scenario& scenario : Scenarios(64)) {
    EXPECT_TRUE(names.insert(scenario.name).second);
    for (const Job& job : scenario.jobs) {
      for (const Job::Link& link : job.links) EXPECT_GT(64, std::max(link.ends.from, link.ends.to));
    }
  }
}

}  // namespace
}  // namespace fabric
}  // namespace tcpx
