// verdict.h: the figures of a scenario, and whether the autopilot holds its bars.
//
// Threads: any. Units: seconds, bytes per second; parts are of another rate. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "bench/fabric/scenario.h"

namespace tcpx {
namespace fabric {

// What one job got under one decider. Settled: the last third of its run.
struct Figures {
  double rate = 0;        // from second 10 on, once all jobs run
  double kept = 0;        // that, as a part of its rate before the last job began; 0: it began last
  double collective = 0;  // mean time, settled
  double p99 = 0;
  double lanes = 0;  // of a connection, in the end
  double host_lanes = 0;
  double first_dials = 0;  // per second and host, in the first 10 seconds
  double dials = 0;        // the same, settled
  double settles = 0;      // until within 5 % of its last rate
  double deviation = 0;    // of the settled rate, as a part
};
// `all_run`: when the last job began, if later than this one.
Figures FiguresOf(const Course& course, double start, double all_run = 0);

struct Bar {
  std::string id;
  std::string name;
  double limit = 0;
  double seen = 0;
  bool at_least = true;

  bool holds() const { return at_least ? seen >= limit : seen <= limit; }
};
// One per bar that concerns the scenario; of several jobs the worst. `outcomes`: by Deciders(); one without courses was
// not run.
std::vector<Bar> BarsOf(const Scenario& scenario, const std::vector<Outcome>& outcomes);

}  // namespace fabric
}  // namespace tcpx
