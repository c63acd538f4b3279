// fabric_report.h: what a run of the simulator found, as text, and as a run for the page of net_bench --report.
//
// Threads: any; pure. Errors: none.
#ifndef TCPX_BENCH_FABRIC_FABRIC_REPORT_H_
#define TCPX_BENCH_FABRIC_FABRIC_REPORT_H_

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

#endif  // TCPX_BENCH_FABRIC_FABRIC_REPORT_H_
