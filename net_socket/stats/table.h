// table.h: what a communicator's connections did, as a table for the log.
//
// Threads: any; pure.
// Units:   of the columns, in their heads. Errors: none.
#pragma once

#include <string>
#include <vector>

#include "net_socket/stats/totals.h"

namespace tcpx {

// Rows of one table at the most; what is beyond is one more, that says how many.
inline constexpr size_t kTableRowsMax = 64;

// A head, and a row for each device, peer host and direction. Empty where there was no connection.
std::vector<std::string> StatsTable(const Totals& totals);

}  // namespace tcpx
