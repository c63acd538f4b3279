// snapshot_json.h: a snapshot as one JSON document, for TCPX_STATS_SOCKET and tcpx_top.
//
// Threads: any; pure.
// Units:   bytes, nanoseconds (_ns), microseconds (_us); counts are of the whole life. Histograms are lists of
//          [upper bound, count] of the powers of two that have any.
// Errors:  none. Text that is no UTF-8 has its bytes as \u00XX.
#pragma once

#include <string>

#include "net_socket/stats/snapshot.h"

namespace tcpx {

// The first member; raised when a member changes its meaning or goes.
inline constexpr int kSnapshotFormat = 1;

std::string SnapshotJson(const Snapshot& snapshot);

}  // namespace tcpx
