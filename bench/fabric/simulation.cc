#include "bench/fabric/simulation.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "bench/fabric/draw.h"
#include "common/clock.h"

namespace tcpx {
namespace fabric {
namespace {

// A connection that its ring holds back is measured with so much room, so that the ring may become faster.
constexpr double kRoom = 1.5;
constexpr double kSlack = 1.02;
// No clock of the plugin begins with 0.
constexpr int64_t kBeginNs = 5 * kSecond;

size_t SpanOf(double seconds) { return static_cast<size_t>(seconds / Course::kSpan + 1e-6); }

double Sum(const std::vector<double>& values, double from, double to) {
  const size_t end = std::min(SpanOf(to), values.size());
  double sum = 0;
  for (size_t i = SpanOf(from); i < end; ++i) sum += values[i];
  return sum;
}

}  // namespace

double Course::Rate(double from, double to) const { return Sum(bytes, from, to) / (to - from); }
double Course::Dials(double from, double to) const { return Sum(dials, from, to) / (to - from); }
double Course::Sockets(double at) const { return sockets[std::min(SpanOf(at), sockets.size() - 1)]; }

Simulation::Simulation(const TopologySpec& topology, const std::vector<Job>& jobs, const Policy& policy,
                       const Conditions& conditions)
    : conditions_(conditions), topology_(topology, &links_) {
  for (const Job& job : jobs) {
    std::map<std::pair<int, int>, Process*> processes;  // by host and number
    std::set<int> hosts;
    Running running;
    running.job = job;
    running.first = connections_.size();
    running.next = job.start;
    running.rest.resize(job.links.size());
    for (const Job::Link& link : job.links) {
      Process*& process = processes[{link.ends.from, link.process}];
      if (process == nullptr) process = processes_.emplace_back(std::make_unique<Process>()).get();
      hosts.insert(link.ends.from);
      const int limiter = link.group >= 0 ? links_.AddLink(kUnlimited) : -1;
      const uint64_t seed = Draw(conditions.seed, connections_.size(), 7);
      connections_.push_back(std::make_unique<Connection>(link.ends, policy, seed, limiter, process, &topology_));
    }
    Course course;
    course.connections = static_cast<int>(job.links.size());
    course.hosts = static_cast<int>(hosts.size());
    courses_.push_back(course);
    group_rates_.emplace_back(static_cast<size_t>(job.groups), kUnlimited);
    jobs_.push_back(std::move(running));
  }
  moved_.resize(connections_.size());
}

void Simulation::Begin(Running* running) {
  running->began = running->last = running->next;
  running->next = kUnlimited;
  running->left = running->rest.size();
  std::fill(running->rest.begin(), running->rest.end(), running->job.bytes);
  for (size_t i = 0; i < running->rest.size(); ++i) connections_[running->first + i]->active = true;
  changed_ = true;
}

void Simulation::End(Running* running, Course* course) {
  double tail = 0;
  for (size_t i = 0; i < running->rest.size(); ++i) {
    tail = std::max(tail, connections_[running->first + i]->Tail(running->job.bytes));
  }
  const double end = running->last + tail;
  course->collectives.emplace_back(end, end - running->began);
  running->next = end + running->job.gap;
}

// First each ring's rate: what its slowest connection could have while others take little more than their ring needs.
// Then all shares, with each connection held to its ring's rate.
void Simulation::Solve() {
  if (!changed_) return;
  changed_ = false;
  const bool couples = std::any_of(jobs_.begin(), jobs_.end(), [](const Running& one) { return one.job.groups > 0; });
  const bool parts = std::any_of(connections_.begin(), connections_.end(),
                                 [](const auto& connection) { return connection->equal_parts(); });
  const int first = couples || parts ? 0 : 1;
  for (int round = first; round < 2; ++round) {
    if (round == first || parts) {
      flows_.clear();
      for (auto& connection : connections_) {
        if (connection->active) connection->AddFlows(round == 0 ? kRoom : kSlack, &flows_);
      }
      links_.Solve(&flows_);
    } else {
      links_.SolveAgain(&flows_);  // Only their limiters have changed.
    }
    topology_.FillQueues();
    for (auto& connection : connections_) {
      if (connection->active) connection->TakeShares(flows_, round == 1);
    }
    Couple(round == 0 ? kSlack : kRoom);
  }
}

void Simulation::Couple(double slack) {
  for (size_t j = 0; j < jobs_.size(); ++j) {
    const Running& running = jobs_[j];
    std::vector<double>& rates = group_rates_[j];
    std::fill(rates.begin(), rates.end(), kUnlimited);
    for (size_t i = 0; i < running.rest.size(); ++i) {
      Connection& connection = *connections_[running.first + i];
      if (!connection.active) continue;
      const int group = running.job.links[i].group;
      connection.Settle(connection.capacity());
      if (group >= 0)
        rates[static_cast<size_t>(group)] = std::min(rates[static_cast<size_t>(group)], connection.rate());
    }
    for (size_t i = 0; i < running.rest.size(); ++i) {
      Connection& connection = *connections_[running.first + i];
      const int group = running.job.links[i].group;
      if (!connection.active || group < 0) continue;
      connection.Settle(rates[static_cast<size_t>(group)]);
      links_.SetCapacity(connection.limiter(), rates[static_cast<size_t>(group)] * slack);
    }
  }
}

void Simulation::MoveJob(size_t index, double until) {
  Running& running = jobs_[index];
  Course& course = courses_[index];
  if (running.next <= until) Begin(&running), Solve();
  if (running.left == 0) return;
  const double from = std::max(now_, running.began);
  if (until <= from) return;
  double bytes = 0;
  for (size_t i = 0; i < running.rest.size(); ++i) {
    Connection& connection = *connections_[running.first + i];
    if (!connection.active) continue;
    const double noise = 1 + conditions_.noise * Normal(conditions_.seed, draws_, running.first + i);
    const double rate = connection.rate() * noise;
    double seconds = until - from;
    if (rate * seconds >= running.rest[i]) {
      seconds = running.rest[i] / rate;
      running.last = std::max(running.last, from + seconds);
      connection.active = false;
      changed_ = true;
      --running.left;
    }
    connection.Move(seconds, noise);
    running.rest[i] -= rate * seconds;
    moved_[running.first + i] += rate * seconds;
    bytes += rate * seconds;
  }
  course.bytes.back() += bytes;
  if (running.left == 0) End(&running, &course);
}

void Simulation::Look() {
  const int64_t now_ns = kBeginNs + static_cast<int64_t>(now_ * 1e9);
  const bool freeze = now_ > conditions_.frozen_from;
  for (auto& connection : connections_) {
    if (connection->active && connection->Look(now_ns, freeze)) changed_ = true;
  }
}

void Simulation::Count(size_t index) {
  const Running& running = jobs_[index];
  double sockets = 0, dials = 0;
  for (size_t i = 0; i < running.rest.size(); ++i) {
    const Connection& connection = *connections_[running.first + i];
    sockets += connection.sockets();
    dials += static_cast<double>(connection.dials());
  }
  Course& course = courses_[index];
  course.sockets.push_back(sockets);
  course.dials.push_back(dials - std::accumulate(course.dials.begin(), course.dials.end(), 0.0));
  course.bytes.push_back(0);
}

void Simulation::ChangePaths() {
  while (changes_done_ < conditions_.changes.size() && conditions_.changes[changes_done_].at <= now_) {
    const std::vector<double>& paths = conditions_.changes[changes_done_++].paths;
    for (size_t i = 0; i < paths.size(); ++i) topology_.SetPath(static_cast<int>(i), paths[i]);
    changed_ = true;
  }
}

void Simulation::Run(double seconds) {
  const int64_t ticks = static_cast<int64_t>(seconds / conditions_.tick + 0.5);
  size_t span = static_cast<size_t>(-1);
  for (int64_t i = 0; i < ticks; ++i) {
    now_ = static_cast<double>(i) * conditions_.tick;
    const double until = now_ + conditions_.tick;
    if (SpanOf(now_) != span) {
      span = SpanOf(now_);
      for (size_t j = 0; j < jobs_.size(); ++j) Count(j);
    }
    const uint64_t draw = static_cast<uint64_t>(now_ / conditions_.luck_lasts);
    ChangePaths();
    if (conditions_.luck > 0 && (draw != draws_luck_ || i == 0)) {
      draws_luck_ = draw;
      for (auto& connection : connections_) connection->SetLuck(draw, conditions_.luck);
      changed_ = true;
    }
    ++draws_;
    Solve();
    for (size_t j = 0; j < jobs_.size(); ++j) MoveJob(j, until);
    now_ = until;
    Look();
  }
}

std::vector<double> Simulation::Parts(int job) const {
  const Running& running = jobs_[static_cast<size_t>(job)];
  const auto begin = moved_.begin() + static_cast<ptrdiff_t>(running.first);
  std::vector<double> parts(begin, begin + static_cast<ptrdiff_t>(running.rest.size()));
  const double sum = std::accumulate(parts.begin(), parts.end(), 0.0);
  for (double& part : parts) part *= static_cast<double>(parts.size()) / sum;
  return parts;
}

}  // namespace fabric
}  // namespace tcpx
