// table.h: what runs with several seeds found, as rows of docs/scale.md.
//
// Threads: any; pure.
// Errors:  none.
#pragma once

#include <string>
#include <vector>

#include "bench/fabric/fabric_report.h"

namespace tcpx {
namespace fabric {

// Markdown: a row for each scenario and number of hosts, in the order of the runs. Where seeds differ a cell has the
// least and the most; a bar that any of them misses is bold.
std::string MarkdownTable(const std::vector<Run>& runs);

}  // namespace fabric
}  // namespace tcpx
