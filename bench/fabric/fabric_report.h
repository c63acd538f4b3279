// fabric_report.h: what a run of the simulator found, as text, and as a run for the page of net_bench --report.
//
// Threads: any; pure. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "bench/fabric/verdict.h"

namespace tcpx {
namespace fabric {

struct Run {
  Scenario scenario;
  std::vector<Outcome> outcomes;  // by Deciders()
};

std::string TextReport(const Run& run);
// `command`: with which it is had again.
std::string PageData(const std::vector<Run>& runs, const std::string& command);

}  // namespace fabric
}  // namespace tcpx
