// options.h: the command line of nccl_bench.
//
// Threads: none; pure.
// Units:   sizes are bytes, times say theirs.
// Errors:  ParseOptions: kInvalidArgument with one sentence for the user; the caller exits with 2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/nccl_bench/collective.h"
#include "bench/nccl_bench/data_type.h"

namespace tcpx {
namespace nccl_bench {

enum class Mode {
  kBench,     // the table of nccl-tests
  kSplit,     // communicators split from one another
  kClasses,   // two communicators of different traffic classes
  kAbort,     // all ranks abort in mid-collective, and begin anew
  kKilled,    // the last rank is killed; the others must get an error
  kReload,    // communicators made and destroyed, one after the other
  kOneSided,  // puts with signals, and collectives without kernels
};
inline constexpr Mode kModes[] = {Mode::kBench,  Mode::kSplit,  Mode::kClasses, Mode::kAbort,
                                  Mode::kKilled, Mode::kReload, Mode::kOneSided};
const char* ModeName(Mode mode);

struct Options {
  bool help = false;
  bool version = false;
  Mode mode = Mode::kBench;
  std::vector<Collective> collectives = {Collective::kAllReduce};
  std::vector<DataType> types = {DataType::kFloat};
  std::vector<RedOp> ops = {RedOp::kSum};
  int root = 0;
  std::vector<uint64_t> sizes;  // never empty after parsing
  int iterations = 20;
  int warmup = 5;
  bool graph = false;
  bool check = true;
  int local = 0;                  // 0: this process is one rank of a job
  std::vector<std::string> nets;  // empty: what NCCL chooses, unwatched
  std::string plugin;             // NCCL_NET_PLUGIN of nets that are not NCCL's own
  bool plugin_given = false;      // false: as the environment has it, else "tcpx"
  int rounds = 50;                // of reload
  int timeout_s = 120;
  uint64_t seed = 1;
};

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments);
const char* UsageText();

// True exactly for the transports inside NCCL, which need no plugin ("Socket" and "IB"; NCCL ignores the case).
bool IsInternalNet(const std::string& net);

}  // namespace nccl_bench
}  // namespace tcpx
