#include "bench/fabric/scenario.h"

#include <algorithm>
#include <numeric>

namespace tcpx {
namespace fabric {
namespace {

using Kind = TopologySpec::Kind;

constexpr double kNicMbit = 100000;
// About how long a collective takes where nothing slows it down.
constexpr double kCollective = 0.5;
constexpr double kGap = 0.02;
constexpr double kSecondJobAt = 20;
// What a fast flow has in its bottleneck's queue where the buffer leaves room: a socket's send buffer, by tcp_wmem.
constexpr double kSocketBytes = 4 << 20;

TopologySpec Spines(int hosts, double oversubscription) {
  TopologySpec spec;
  spec.kind = Kind::kLeafSpine;
  spec.hosts = hosts;
  spec.nic = kNicMbit * kMbit;
  spec.leaf_hosts = hosts >= 64 ? 16 : 4;
  spec.spines = hosts >= 64 ? 8 : 4;
  spec.oversubscription = oversubscription;
  return spec;
}

// Neighbours of a ring are in different leaves: what a scheduler does to a job. Each of several jobs has hosts in every
// leaf.
std::vector<int> Scattered(const TopologySpec& spec, int job, int jobs) {
  const int leaves = spec.hosts / spec.leaf_hosts;
  std::vector<int> hosts;
  for (int i = 0; i < spec.hosts; ++i) {
    if (i / leaves % jobs == job) hosts.push_back(i % leaves * spec.leaf_hosts + i / leaves);
  }
  return hosts;
}

double BytesFor(const TopologySpec& spec) { return spec.nic * spec.rails * kCollective / 2; }

Scenario Named(const std::string& name, const std::string& what, const TopologySpec& topology) {
  Scenario scenario;
  scenario.name = name;
  scenario.what = what;
  scenario.hosts = topology.hosts;
  scenario.topology = topology;
  return scenario;
}

// Channels and peers, fewer where there are thousands of hosts.
int Thinned(int count, int hosts) { return hosts > 1000 ? count / 8 : hosts > 100 ? count / 4 : count; }

void AddRings(int hosts, std::vector<Scenario>* all) {
  const TopologySpec spines = Spines(hosts, 1);
  const std::vector<int> order = Scattered(spines, 0, 1);
  all->push_back(Named("ring-1", "a ring with one channel over leaves and spines", spines));
  all->back().jobs = {Ring({order, 1}, BytesFor(spines), kGap)};
  all->back().one_per_pair = true;
  const int channels = Thinned(16, hosts);
  const std::string many = std::to_string(channels) + " channels";
  all->push_back(Named("ring", "a ring with " + many + " over leaves and spines", spines));
  all->back().jobs = {Ring({order, channels}, BytesFor(spines), kGap)};
  const TopologySpec narrow = Spines(hosts, 2);
  all->push_back(Named("ring-oversubscribed", "the same, with half of what hosts send leaving a leaf", narrow));
  all->back().jobs = {Ring({order, channels}, BytesFor(narrow), kGap)};
  TopologySpec slow = spines;
  slow.slow_host = hosts / 2;
  all->push_back(Named("ring-straggler", "the ring, with a host of half the speed", slow));
  all->back().jobs = {Ring({order, channels}, BytesFor(slow), kGap)};
  TopologySpec rails;
  rails.kind = Kind::kRails;
  rails.hosts = hosts;
  rails.rails = std::min(8, channels);
  rails.nic = kNicMbit * kMbit;
  std::vector<int> straight(static_cast<size_t>(hosts));
  std::iota(straight.begin(), straight.end(), 0);
  all->push_back(Named("ring-rails", "a ring with " + many + " over rails", rails));
  all->back().jobs = {Ring({straight, channels, rails.rails}, BytesFor(rails), kGap)};
  TopologySpec cloud;
  cloud.kind = Kind::kVirtual;
  cloud.hosts = hosts;
  cloud.nic = kNicMbit * kMbit;
  cloud.per_flow = 10000 * kMbit;
  cloud.blind = true;
  all->push_back(Named("ring-cloud", "a ring with 2 channels; flows of 10 Gbit/s, hosts of 100", cloud));
  all->back().jobs = {Ring({straight, 2}, BytesFor(cloud), kGap)};
}

void AddOthers(int hosts, std::vector<Scenario>* all) {
  const TopologySpec spines = Spines(hosts, 1);
  const int peers = std::min(Thinned(16, hosts), hosts - 1);
  const std::string to = std::to_string(peers) + " peers";
  all->push_back(Named("alltoall", "each host sends to " + to + " over leaves and spines", spines));
  all->back().jobs = {AllToAll(hosts, peers, 2 * BytesFor(spines) / peers, kGap)};
  all->back().one_per_pair = true;
  all->push_back(Named("trees", "two binary trees over leaves and spines", spines));
  all->back().jobs = {Trees(hosts, BytesFor(spines), kGap)};
  all->push_back(Named("pipeline", "each host and the next, both directions", spines));
  all->back().jobs = {Pipeline(hosts, 2 * BytesFor(spines), kGap)};
  all->back().one_per_pair = true;
  all->push_back(Named("incast", "all hosts send to one", spines));
  all->back().jobs = {Incast(hosts, 2 * BytesFor(spines) / hosts, kGap)};
  all->back().one_per_pair = true;
  const int channels = Thinned(8, hosts);
  const TopologySpec narrow = Spines(hosts, 2);
  all->push_back(Named("two-jobs", "two rings, each over half of the hosts; the second begins after 20 s", narrow));
  all->back().jobs = {Ring({Scattered(narrow, 0, 2), channels}, BytesFor(narrow), kGap),
                      Ring({Scattered(narrow, 1, 2), channels}, BytesFor(narrow), kGap)};
  all->back().jobs[1].start = kSecondJobAt;
}

}  // namespace

std::vector<Scenario> Scenarios(int hosts, double buffer) {
  std::vector<Scenario> all;
  AddRings(hosts, &all);
  AddOthers(hosts, &all);
  for (Scenario& scenario : all) {
    scenario.topology.buffer = buffer;
    scenario.topology.queue_bytes = buffer > 0 ? kSocketBytes : 0;
  }
  return all;
}

std::vector<Decider> Deciders() {
  using K = Policy::Kind;
  std::vector<Decider> all = {{"autopilot", {K::kPilot, 0}, false}};
  for (int lanes : {1, 2, 4, 8, 16, 32}) all.push_back({"fixed " + std::to_string(lanes), {K::kFixed, lanes}, false});
  all.push_back({"4 sockets, as NCCL's", {K::kEqualParts, 4}, false});
  all.push_back({"oracle", {K::kFixed, 1}, true});
  all.push_back({"autopilot, frozen", {K::kPilot, 0}, false, true});
  return all;
}

bool Decider::brief() const {
  if (oracle || policy.kind != Policy::Kind::kFixed) return oracle || (policy.kind == Policy::Kind::kPilot && !frozen);
  return policy.lanes == 1 || policy.lanes == 8 || policy.lanes == 16;
}

double LastStart(const Scenario& scenario) {
  double last = 0;
  for (const Job& job : scenario.jobs) last = std::max(last, job.start);
  return last;
}

Outcome RunScenario(const Scenario& scenario, const Decider& decider, const Length& length) {
  TopologySpec topology = scenario.topology;
  topology.perfect = decider.oracle;
  Conditions conditions;
  conditions.seed = length.seed;
  conditions.tick = length.tick;
  if (decider.oracle) conditions.luck = 0;
  double seconds = decider.policy.kind == Policy::Kind::kPilot ? length.piloted : length.fixed;
  for (const Job& job : scenario.jobs) seconds = std::max(seconds, job.start > 0 ? job.start + length.fixed : 0);
  if (decider.frozen) conditions.frozen_from = Settled(LastStart(scenario), seconds);
  Simulation simulation(topology, scenario.jobs, decider.policy, conditions);
  simulation.Run(seconds);
  return {decider.name, simulation.courses()};
}

std::vector<Outcome> RunDeciders(const Scenario& scenario, const Length& length, bool brief) {
  std::vector<Outcome> outcomes;
  for (const Decider& decider : Deciders()) {
    const bool runs = !brief || decider.brief();
    outcomes.push_back(runs ? RunScenario(scenario, decider, length) : Outcome{decider.name, {}});
  }
  return outcomes;
}

}  // namespace fabric
}  // namespace tcpx
