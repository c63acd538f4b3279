// table.h: the table of nccl-tests, and the one that sets two networks side by side.
//
// Threads: any; pure.
// Units:   time us, bandwidths GB/s (10^9 bytes per second), as nccl-tests prints them.
// Errors:  ParseRow: kInvalidArgument for a line that FormatRow did not write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/nccl_bench/collective.h"
#include "bench/nccl_bench/data_type.h"

namespace tcpx {
namespace nccl_bench {

// One variant of running one line.
struct Timing {
  bool ran = false;  // false: it does not exist (in place), or was not run
  double time_us = 0;
  bool checked = false;
  uint64_t wrong = 0;
};

struct Row {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kFloat;
  RedOp op = RedOp::kSum;
  int root = -1;  // -1: none
  int ranks = 1;
  uint64_t bytes = 0;
  uint64_t count = 0;
  Timing out_of_place;
  Timing in_place;
};

// GB/s; 0 where the time is 0.
double AlgorithmBandwidth(uint64_t bytes, const Timing& timing);
double BusBandwidth(const Row& row, const Timing& timing);

std::string TableHeader();
std::string TableLine(const Row& row);

// One line of text without its end, for the process that compares.
std::string FormatRow(const Row& row);
absl::StatusOr<Row> ParseRow(absl::string_view line);

struct NetRows {
  std::string net;
  std::vector<Row> rows;
};
// Each net's busbw and its ratio to that of the last net; nothing for less than two. Rows are matched by what they
// measure.
std::string ComparisonTable(const std::vector<NetRows>& nets);

}  // namespace nccl_bench
}  // namespace tcpx
