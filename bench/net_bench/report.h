// report.h: everything a run found, as a table for people, as CSV, or as JSON.
//
// Threads: any; pure: each function returns text.
// Units:   those of the columns, named in their heads. Errors: none.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/net_bench/cost.h"
#include "bench/net_bench/options.h"
#include "bench/net_bench/plan.h"
#include "common/payload/flag_lines.h"

namespace tcpx {
namespace bench {

struct CostReport {
  Mode mode = Mode::kSetup;
  int connections = 0;
  CostResult ranks[2];
};

struct AllreduceRow {
  uint64_t bytes = 0;
  int ranks = 0;
  int repeats = 0;
  double microseconds = 0;  // median
  double lower_us = 0;      // quartiles
  double upper_us = 0;
  double algorithm_gbps = 0;  // bytes / time
  double bus_gbps = 0;        // algorithm_gbps * 2 (ranks - 1) / ranks
  uint64_t wrong = 0;         // elements
};

// Figures of one variant of receiving; one entry per sample.
struct FlagSamples {
  std::vector<double> p50_us;  // half round trips, as the second thread sees them
  std::vector<double> p99_us;
  std::vector<double> tests_per_answered;   // calls to test per receive, one message at a time
  std::vector<double> messages_per_second;  // one way, --window in flight
  std::vector<double> tests_per_message;    // the same, one way
};

struct FlagRow {
  LineKind kind = LineKind::kLl;
  uint64_t bytes = 0;
  FlagSamples samples[2];  // without NCCL's hint, with it
};

// A ping-pong next to a stream; one entry per sample.
struct MixedSamples {
  std::vector<double> p50_us;  // half round trips
  std::vector<double> p99_us;
  std::vector<double> stream_gbps;
  uint64_t pings = 0;  // in all samples
};
inline constexpr int kMixedSides = 2;

struct MixedRow {
  uint64_t bytes = 0;                 // of the ping-pong
  MixedSamples samples[kMixedSides];  // of the plugin, of bare sockets
};

struct RunReport {
  std::vector<std::pair<std::string, std::string>> configuration;  // name, value; in the order of printing
  PhaseChoice phase = PhaseChoice::kNear;
  int samples = 0;  // wanted
  std::vector<ModeReport> modes;
  std::vector<CostReport> costs;
  std::vector<AllreduceRow> allreduce;
  std::vector<FlagRow> flags;
  std::vector<MixedRow> mixed;
};

std::string TableHeader(const RunReport& report);
// The mode's main table, and the far phase below it where it was seen.
std::string ModeTable(const RunReport& report, const ModeReport& mode);
std::string CostTable(const CostReport& cost);
std::string AllreduceTable(const std::vector<AllreduceRow>& rows);

std::string FlagTable(const std::vector<FlagRow>& rows);
std::string MixedTable(const std::vector<MixedRow>& rows);

std::string CsvReport(const RunReport& report);
std::string JsonReport(const RunReport& report);

}  // namespace bench
}  // namespace tcpx
