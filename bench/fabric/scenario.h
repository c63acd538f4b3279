// scenario.h: what is simulated, who decides in it, and what came of it.
//
// Threads: any. Units: seconds, bytes per second.
// Errors:  none; a name that nobody knows finds nothing.
#pragma once

#include <string>
#include <vector>

#include "bench/fabric/simulation.h"

namespace tcpx {
namespace fabric {

struct Scenario {
  std::string name;
  std::string what;  // and what was left out of it, to make it small
  int hosts = 0;
  TopologySpec topology;
  std::vector<Job> jobs;
  bool one_per_pair = false;  // one connection from a host to another
};

// All of them for so many hosts. `buffer`: bytes that wait for a link at the most; 0: nobody sees a queue.
inline constexpr double kBuffer = 16e6;
std::vector<Scenario> Scenarios(int hosts, double buffer = kBuffer);

struct Decider {
  std::string name;
  Policy policy;
  bool oracle = false;  // flows spread themselves over all paths
};
// The autopilot first; then fixed numbers, NCCL's Socket with four sockets, and the oracle.
std::vector<Decider> Deciders();

struct Outcome {
  std::string decider;
  std::vector<Course> courses;  // by job
};

struct Length {
  double piloted = 60;
  double fixed = 12;  // of those that decide nothing
  uint64_t seed = 1;
  double tick = 0.02;
};

Outcome RunScenario(const Scenario& scenario, const Decider& decider, const Length& length);

}  // namespace fabric
}  // namespace tcpx
