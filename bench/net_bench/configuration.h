// configuration.h: the lines above a report that say what was measured, and on what.
//
// Threads: the driver.
// Errors:  none: what can't be found out is left out.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/net_bench/options.h"
#include "bench/net_bench/place.h"

namespace tcpx {
namespace bench {

// (name, value), in the order of printing. Call it once connections exist: a plugin says how it is set up when it needs
// to know. `plugin` and `vs`, the second one, say what they are, or are empty; `raw_congestion` is empty when there are
// no bare sockets.
std::vector<std::pair<std::string, std::string>> Configuration(const Options& options, const WorkerPlace& place,
                                                               const std::string& plugin, const std::string& vs,
                                                               const std::string& raw_congestion);

}  // namespace bench
}  // namespace tcpx
