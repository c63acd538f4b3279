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
  bool frozen = false;  // the autopilot, which does nothing in the last third

  // Part of the short form: without those that are never the best, and without what only the long one compares.
  bool brief() const;
};
// The autopilot first; then fixed numbers, NCCL's Socket with four sockets, the oracle, and the frozen autopilot.
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

// When the last of its jobs begins.
double LastStart(const Scenario& scenario);
// Where the last third of a job's time begins.
inline double Settled(double start, double end) { return start + (end - start) * 2 / 3; }

Outcome RunScenario(const Scenario& scenario, const Decider& decider, const Length& length);
// By all deciders; `brief`: those of the short form, and no courses of the others.
std::vector<Outcome> RunDeciders(const Scenario& scenario, const Length& length, bool brief);

}  // namespace fabric
}  // namespace tcpx
