// exposition.h: a snapshot in Prometheus' text format.
//
// Purpose: names end in their unit, counters in _total, as Prometheus' conventions ask for. By default every series is
//          of a device and a peer's host, and histograms of a device: so their number does not grow with connections.
// Threads: any; pure. Units: seconds and bytes. Errors: none.
// Source:  prometheus.io, "Exposition formats" (version 0.0.4) and "Metric and label naming".
#pragma once

#include <string>
#include <vector>

#include "net_socket/stats/snapshot.h"

namespace tcpx {

struct MetricFamily {
  const char* name;
  const char* type;  // counter, gauge, histogram
  const char* help;
};

// All that PrometheusText may write.
std::vector<MetricFamily> MetricFamilies();

// `lanes`: series of each lane of each connection too, of the snapshot's first kLanesMax.
inline constexpr int kLanesMax = 4096;
std::string PrometheusText(const Snapshot& snapshot, bool lanes);

}  // namespace tcpx
