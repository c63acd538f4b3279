// snapshot.h: everything that the statistics know at one moment, and how it is shown: JSON, Prometheus' text format.
//
// Threads: plain data; the functions are pure. Errors: none.
// Units:   as in numbers.h; seconds since 1970 where a name ends in _unix.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net_socket/stats/numbers.h"
#include "net_socket/stats/thread_times.h"
#include "net_socket/stats/totals.h"

namespace tcpx {

struct ProcessNumbers {
  std::string host;
  int pid = 0;
  std::string mark;  // ProcessMark: the PID, and in a container its PID namespace too
  int uid = 0;
  std::string slurm_job_id;  // "unknown" outside of one
  double started_unix = 0;   // the plugin's first connection
};

struct Snapshot {
  ProcessNumbers process;
  double now_unix = 0;
  int64_t now_ns = 0;          // of MonotonicNanos: for differences
  uint64_t collection_ns = 0;  // CPU that the statistics themselves have taken
  uint64_t looks = 0;
  std::vector<ThreadTimes> threads;
  Totals totals;
  RmaNumbers rma;
  std::vector<ConnectionNumbers> connections;  // open ones; empty where not asked for
};

// As one JSON document, for TCPX_STATS_SOCKET and tcpx_top. Histograms are lists of [upper bound, count] of the powers
// of two that have any. Text that is no UTF-8 has its bytes as \u00XX.
std::string SnapshotJson(const Snapshot& snapshot);

// Its first member; raised when a member changes its meaning or goes.
inline constexpr int kSnapshotFormat = 1;

// For Prometheus, in seconds and bytes: names end in their unit, counters in _total, as its conventions ask for. By
// default every series is of a device and a peer's host, and histograms of a device: so their number does not grow with
// connections. `lanes`: series of each lane of each connection too, of the snapshot's first kLaneSeriesMax.
// Source: prometheus.io, "Exposition formats" (version 0.0.4) and "Metric and label naming".
std::string PrometheusText(const Snapshot& snapshot, bool lanes);
inline constexpr int kLaneSeriesMax = 4096;

struct MetricFamily {
  const char* name;
  const char* type;  // counter, gauge, histogram
  const char* help;
};
// All that PrometheusText may write.
std::vector<MetricFamily> MetricFamilies();

}  // namespace tcpx
