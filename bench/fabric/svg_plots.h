// svg_plots.h: how fast scenarios were over time, and how much they dialled, as one picture (docs/scale.svg).
//
// Threads: any; pure.
// Errors:  none.
#pragma once

#include <string>
#include <vector>

#include "bench/fabric/fabric_report.h"

namespace tcpx {
namespace fabric {

// A panel for each scenario, with a line for each number of hosts; of several seeds the first. `command`: with which it
// is had again.
std::string SvgPlots(const std::vector<Run>& runs, const std::string& command);

}  // namespace fabric
}  // namespace tcpx
