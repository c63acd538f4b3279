#include "bench/nccl_bench/reference.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// A multiplicative hash: its upper bits depend on all of the lower ones. Source of the factor: 2^64 / golden ratio.
uint64_t Mix(uint64_t value) {
  value *= 0x9e3779b97f4a7c15ULL;
  value ^= value >> 32;
  return value * 0x9e3779b97f4a7c15ULL;
}

Expected Reduced(const Problem& problem, size_t index) {
  double result = InputValue(problem, 0, index);
  double magnitudes = std::fabs(result);
  for (int rank = 1; rank < problem.ranks; ++rank) {
    const double value = InputValue(problem, rank, index);
    magnitudes += std::fabs(value);
    switch (problem.op) {
      case RedOp::kSum:
        result += value;
        break;
      case RedOp::kMin:
        result = std::min(result, value);
        break;
      case RedOp::kMax:
        result = std::max(result, value);
        break;
    }
  }
  if (problem.op != RedOp::kSum) return {result, 0};
  if (problem.type == DataType::kInt8) {
    return {static_cast<double>(static_cast<int8_t>(static_cast<uint8_t>(static_cast<int64_t>(result)))), 0};
  }
  const double roundings = (problem.ranks - 1) * Roundoff(problem.type);
  return {result, roundings / (1 - roundings) * magnitudes};
}

}  // namespace

double InputValue(const Problem& problem, int rank, size_t index) {
  const uint64_t stream = Mix(problem.seed * 4096 + static_cast<uint64_t>(rank));
  const int byte = static_cast<int>(Mix(stream + index) >> 56);
  if (problem.type == DataType::kInt8) return byte - 128;
  return (byte - 128) / 128.0;
}

void FillInput(const Problem& problem, void* input, size_t count) {
  for (size_t i = 0; i < count; ++i) StoreElement(problem.type, input, i, InputValue(problem, problem.rank, i));
}

bool HasOutput(const Problem& problem) {
  return problem.collective != Collective::kReduce || problem.rank == problem.root;
}

Expected ExpectedOutput(const Problem& problem, const Layout& layout, size_t index) {
  const size_t own = layout.count * static_cast<size_t>(problem.rank);
  const size_t part = layout.count == 0 ? 0 : index / layout.count;
  const size_t in_part = layout.count == 0 ? 0 : index % layout.count;
  switch (problem.collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return Reduced(problem, index);
    case Collective::kReduceScatter:
      return Reduced(problem, own + index);
    case Collective::kBroadcast:
      return {InputValue(problem, problem.root, index), 0};
    case Collective::kAllGather:
      return {InputValue(problem, static_cast<int>(part), in_part), 0};
    case Collective::kSendReceive:
      return {InputValue(problem, (problem.rank + problem.ranks - 1) % problem.ranks, index), 0};
    case Collective::kAllToAll:
      return {InputValue(problem, static_cast<int>(part), own + in_part), 0};
  }
  return {};
}

Verdict Check(const Problem& problem, const Layout& layout, const void* output) {
  Verdict verdict;
  if (!HasOutput(problem)) return verdict;
  for (size_t i = 0; i < layout.receive_count; ++i) {
    const Expected expected = ExpectedOutput(problem, layout, i);
    const double got = LoadElement(problem.type, output, i);
    if (std::fabs(got - expected.value) <= expected.tolerance) continue;  // A NaN is never within.
    if (verdict.wrong++ == 0) {
      verdict.first = absl::StrCat("element ", i, " of ", layout.receive_count, " is ", got, ", not ", expected.value);
    }
  }
  return verdict;
}

}  // namespace nccl_bench
}  // namespace tcpx
