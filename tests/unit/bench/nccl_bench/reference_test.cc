// A small simulation of every collective, in the device's own arithmetic, must pass the check; and one wrong bit must
// not.
#include "bench/nccl_bench/reference.h"

#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

constexpr int kRanks = 5;
constexpr uint64_t kBytes = 999;  // no multiple of anything

using Bytes = std::vector<char>;

Problem ProblemOf(Collective collective, DataType type, RedOp op, int rank) {
  Problem problem;
  problem.collective = collective;
  problem.type = type;
  problem.op = op;
  problem.root = 2;
  problem.rank = rank;
  problem.ranks = kRanks;
  return problem;
}

Layout LayoutFor(const Problem& problem) {
  return LayoutOf(problem.collective, kBytes, problem.type, problem.rank, kRanks);
}

std::vector<Bytes> Inputs(Problem problem) {
  std::vector<Bytes> inputs;
  for (problem.rank = 0; problem.rank < kRanks; ++problem.rank) {
    inputs.emplace_back(kBytes);
    FillInput(problem, inputs.back().data(), LayoutFor(problem).send_count);
  }
  return inputs;
}

// Rounded to the type after each step, from rank `first` round the ring, as a ring on the device does it.
double ReduceInType(const Problem& problem, const std::vector<Bytes>& inputs, size_t index, int first) {
  Bytes element(sizeof(double));
  StoreElement(problem.type, element.data(), 0, LoadElement(problem.type, inputs[first].data(), index));
  for (int step = 1; step < kRanks; ++step) {
    const double before = LoadElement(problem.type, element.data(), 0);
    const double value = LoadElement(problem.type, inputs[(first + step) % kRanks].data(), index);
    const double after = problem.op == RedOp::kSum   ? before + value
                         : problem.op == RedOp::kMin ? std::min(before, value)
                                                     : std::max(before, value);
    StoreElement(problem.type, element.data(), 0, after);
  }
  return LoadElement(problem.type, element.data(), 0);
}

double Simulate(const Problem& problem, const std::vector<Bytes>& inputs, size_t index) {
  const size_t count = LayoutFor(problem).count;
  const size_t rank = static_cast<size_t>(problem.rank);
  const auto input = [&](size_t of, size_t at) { return LoadElement(problem.type, inputs[of].data(), at); };
  switch (problem.collective) {
    case Collective::kAllReduce:
    case Collective::kReduce:
      return ReduceInType(problem, inputs, index, static_cast<int>(index) % kRanks);
    case Collective::kReduceScatter:
      return ReduceInType(problem, inputs, rank * count + index, problem.rank);
    case Collective::kBroadcast:
      return input(static_cast<size_t>(problem.root), index);
    case Collective::kAllGather:
      return input(index / count, index % count);
    case Collective::kSendReceive:
      return input((rank + kRanks - 1) % kRanks, index);
    case Collective::kAllToAll:
      return input(index / count, rank * count + index % count);
  }
  return 0;
}

Bytes Output(const Problem& problem) {
  const std::vector<Bytes> inputs = Inputs(problem);
  Bytes output(kBytes);
  for (size_t i = 0; i < LayoutFor(problem).receive_count; ++i) {
    StoreElement(problem.type, output.data(), i, Simulate(problem, inputs, i));
  }
  return output;
}

std::string Describe(const Problem& problem) {
  return std::string(CollectiveName(problem.collective)) + " " + DataTypeName(problem.type) + " " +
         RedOpName(problem.op) + " rank " + std::to_string(problem.rank);
}

template <class Body>
void ForEveryProblem(const Body& body) {
  for (Collective collective : kCollectives) {
    for (DataType type : kDataTypes) {
      for (RedOp op : kRedOps) {
        for (int rank = 0; rank < kRanks; ++rank) body(ProblemOf(collective, type, op, rank));
      }
    }
  }
}

TEST(Check, RightResultsPass) {
  ForEveryProblem([](const Problem& problem) {
    const Verdict verdict = Check(problem, LayoutFor(problem), Output(problem).data());
    EXPECT_EQ(verdict.wrong, 0u) << Describe(problem) << ": " << verdict.first;
  });
}

// The sign of one element: the smallest fault that no tolerance may cover.
TEST(Check, OneWrongElementDoesNot) {
  ForEveryProblem([](const Problem& problem) {
    if (!HasOutput(problem)) return;
    const Layout layout = LayoutFor(problem);
    Bytes output = Output(problem);
    size_t index = layout.receive_count / 2;
    while (std::abs(LoadElement(problem.type, output.data(), index)) < 0.25) ++index;
    const double value = LoadElement(problem.type, output.data(), index);
    StoreElement(problem.type, output.data(), index, value == -128 ? 1 : -value);
    const Verdict verdict = Check(problem, layout, output.data());
    EXPECT_EQ(verdict.wrong, 1u) << Describe(problem);
    EXPECT_NE(verdict.first.find("element " + std::to_string(index) + " of "), std::string::npos) << verdict.first;
  });
}

// What measure.cc lays into outputs before a run: nothing of it may look like a result.
TEST(Check, AnUntouchedOutputIsWrong) {
  ForEveryProblem([](const Problem& problem) {
    if (!HasOutput(problem)) return;
    const Bytes poison(kBytes, static_cast<char>(0xa5));
    const Layout layout = LayoutFor(problem);
    const Verdict verdict = Check(problem, layout, poison.data());
    EXPECT_GT(verdict.wrong, layout.receive_count * 9 / 10) << Describe(problem);
  });
}

TEST(Check, NotANumberIsWrong) {
  const Problem problem = ProblemOf(Collective::kAllReduce, DataType::kFloat, RedOp::kSum, 0);
  const Bytes ones(kBytes, static_cast<char>(0xff));
  EXPECT_EQ(Check(problem, LayoutFor(problem), ones.data()).wrong, LayoutFor(problem).receive_count);
}

TEST(InputValue, DiffersBetweenRanksAndIsExactInEveryType) {
  for (DataType type : kDataTypes) {
    const Problem problem = ProblemOf(Collective::kAllReduce, type, RedOp::kSum, 0);
    int same = 0;
    for (size_t i = 0; i < 1000; ++i) {
      char element[8];
      StoreElement(type, element, 0, InputValue(problem, 1, i));
      EXPECT_EQ(LoadElement(type, element, 0), InputValue(problem, 1, i));
      same += InputValue(problem, 0, i) == InputValue(problem, 1, i) ? 1 : 0;
    }
    EXPECT_LT(same, 50) << DataTypeName(type);
  }
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
