// reference.h: what goes into the buffers, and what must come out, computed on the host.
//
// Purpose: inputs that every rank can compute for every other, so that results are checked without a second network.
//          They are multiples of 1/128 between -1 and 1 (int8: all 256 values), exact in every type; what is reduced is
//          summed in double.
// Threads: any; pure.
// Units:   elements.
// Errors:  none; Check counts what is wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "bench/nccl_bench/collective.h"
#include "bench/nccl_bench/data_type.h"

namespace tcpx {
namespace nccl_bench {

// One run of one collective, seen from one rank.
struct Problem {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kFloat;
  RedOp op = RedOp::kSum;
  int root = 0;
  int rank = 0;
  int ranks = 1;
  uint64_t seed = 1;
};

// Element `index` of the input of `rank`.
double InputValue(const Problem& problem, int rank, size_t index);

// Writes the input of problem.rank: `count` elements.
void FillInput(const Problem& problem, void* input, size_t count);

struct Expected {
  double value = 0;
  double tolerance = 0;  // 0: exactly value
};
// Element `index` of the output of problem.rank. A reduction of n values is rounded n - 1 times, in an order NCCL
// chooses: each rounding is wrong by at most Roundoff times the sum of the magnitudes (N. Higham, Accuracy and
// Stability of Numerical Algorithms, 4.2).
Expected ExpectedOutput(const Problem& problem, const Layout& layout, size_t index);

// False exactly when the output of problem.rank says nothing: a reduce at a rank that is not its root.
bool HasOutput(const Problem& problem);

struct Verdict {
  uint64_t wrong = 0;
  std::string first;  // of the first wrong element: index, what came, what was expected
};
Verdict Check(const Problem& problem, const Layout& layout, const void* output);

}  // namespace nccl_bench
}  // namespace tcpx
