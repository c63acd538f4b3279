// simulation.h: a fabric, its hosts' jobs, and time.
//
// Purpose: in steps of a few milliseconds: shares are computed anew where a flow came, went or changed its luck; data
//          moves; the plugin looks at its lanes. One seed, one result.
// Threads: one at a time. Units: seconds, bytes, bytes per second; the plugin's clock is in nanoseconds. Errors: none.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "bench/fabric/connection.h"
#include "bench/fabric/job.h"
#include "bench/fabric/topology.h"

namespace tcpx {
namespace fabric {

struct Conditions {
  uint64_t seed = 1;
  double tick = 0.005;
  // Luck of a flow in its queue, and how long it lasts; what a connection moves in a step differs by `noise`.
  double luck = 0.15;
  double luck_lasts = 0.3;
  double noise = 0.01;
  double frozen_from = kUnlimited;  // from then on a pilot that tries nothing does nothing
  // When a path of kPaths gets another rate.
  struct Change {
    double at = 0;
    std::vector<double> paths;
  };
  std::vector<Change> changes;
};

// A job's run, by tenths of a second from the beginning of all; an empty connection counts as zero lanes.
struct Course {
  static constexpr double kSpan = 0.1;
  std::vector<double> bytes;
  std::vector<double> sockets;
  std::vector<double> dials;
  // Collectives: when each ended, and how long it took.
  std::vector<std::pair<double, double>> collectives;
  int connections = 0;
  int hosts = 0;

  // Means from `from` to `to`.
  double Rate(double from, double to) const;
  double Dials(double from, double to) const;
  double Sockets(double at) const;
};

class Simulation {
 public:
  Simulation(const TopologySpec& topology, const std::vector<Job>& jobs, const Policy& policy,
             const Conditions& conditions);

  void Run(double seconds);
  const std::vector<Course>& courses() const { return courses_; }
  // For each connection of a job: its bytes, as a part of the mean of the job's connections.
  std::vector<double> Parts(int job) const;

 private:
  struct Running {
    Job job;
    size_t first = 0;          // of connections_
    double next = 0;           // when its next collective begins
    double began = 0;          // the latest one; below next while it runs
    double last = 0;           // when its latest connection had sent all
    size_t left = 0;           // connections that still send
    std::vector<double> rest;  // bytes, by connection
  };

  void Begin(Running* running);
  void End(Running* running, Course* course);
  void Solve();
  void Couple(double slack);
  void MoveJob(size_t index, double until);
  void Look();
  void Count(size_t job);
  void ChangePaths();

  const Conditions conditions_;
  MaxMin links_;
  Topology topology_;
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<double> moved_;  // by connection
  std::vector<Running> jobs_;
  std::vector<Course> courses_;
  std::vector<std::vector<double>> group_rates_;  // by job
  std::vector<Flow> flows_;
  double now_ = 0;
  bool changed_ = true;
  uint64_t draws_ = 0;
  size_t changes_done_ = 0;
  uint64_t draws_luck_ = 0;
};

}  // namespace fabric
}  // namespace tcpx
