#include "bench/nccl_bench/measure.h"

#include <stdio.h>

#include <algorithm>
#include <functional>

#include "absl/strings/str_cat.h"
#include "bench/command_line/sizes.h"
#include "bench/nccl_bench/issue.h"
#include "common/clock.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// What lies in an output before a checked run: right results of an earlier run must not pass for new ones.
constexpr int kPoison = 0xa5;

// Destroys what would be left after an error.
class Graph {
 public:
  ~Graph() {
    if (exec != nullptr) cudaGraphExecDestroy(exec);
  }
  cudaGraphExec_t exec = nullptr;
};

}  // namespace

absl::Status Measure::Prepare(uint64_t bytes) {
  capacity_ = std::max<size_t>(static_cast<size_t>(bytes), 1);
  host_.resize(capacity_);
  absl::Status status = stream_.Create();
  if (status.ok()) status = send_.Allocate(capacity_);
  return status.ok() ? receive_.Allocate(capacity_) : status;
}

void Measure::Say(const Problem& problem, uint64_t bytes, const Place& place, const char* what) {
  watchdog_->Enter(absl::StrCat(CollectiveName(problem.collective), " of ", DataTypeName(problem.type), ", ",
                                bench::FormatSize(bytes), place.in_place ? ", in place: " : ", out of place: ", what));
}

Measure::Place Measure::PlaceOf(const Problem& problem, const Layout& layout, bool in_place) const {
  Place place{send_.data(), receive_.data(), in_place};
  if (!in_place) return place;
  place.send = receive_.data() + layout.in_place_send * DataTypeBytes(problem.type);
  place.receive = receive_.data() + layout.in_place_receive * DataTypeBytes(problem.type);
  return place;
}

absl::Status Measure::Fill(const Problem& problem, const Layout& layout, const Place& place) {
  const size_t bytes = layout.send_count * DataTypeBytes(problem.type);
  FillInput(problem, host_.data(), layout.send_count);
  absl::Status status = CudaStatus(
      cudaMemsetAsync(receive_.data(), kPoison, static_cast<size_t>(layout.bytes), stream_.get()), "cudaMemsetAsync");
  if (!status.ok()) return status;
  return CudaStatus(cudaMemcpyAsync(place.send, host_.data(), bytes, cudaMemcpyHostToDevice, stream_.get()),
                    "cudaMemcpyAsync to the device");
}

absl::Status Measure::Issue(Communicator* comm, const Problem& problem, const Layout& layout, const Place& place) {
  return IssueCollective(problem, layout, place.send, place.receive, comm->get(), stream_.get());
}

absl::Status Measure::IssueTimes(Communicator* comm, const Problem& problem, const Layout& layout, const Place& place,
                                 int times) {
  for (int i = 0; i < times; ++i) {
    if (absl::Status status = Issue(comm, problem, layout, place); !status.ok()) return status;
    watchdog_->Tick();
  }
  return absl::OkStatus();
}

absl::Status Measure::Capture(Communicator* comm, const Problem& problem, const Layout& layout, const Place& place,
                              int times, cudaGraphExec_t* graph) {
  absl::Status status =
      CudaStatus(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  if (!status.ok()) return status;
  status = IssueTimes(comm, problem, layout, place, times);
  cudaGraph_t captured = nullptr;
  // Ended in any case: a stream left capturing can't be used.
  absl::Status ended = CudaStatus(cudaStreamEndCapture(stream_.get(), &captured), "cudaStreamEndCapture");
  if (status.ok()) status = ended;
  if (status.ok()) {
    status = CudaStatus(cudaGraphInstantiateWithFlags(graph, captured, 0), "cudaGraphInstantiateWithFlags");
  }
  if (captured != nullptr) cudaGraphDestroy(captured);
  return status;
}

// Microseconds for all of them.
absl::StatusOr<double> Measure::TimeOnce(Communicator* comm, const Problem& problem, const Layout& layout,
                                         const Place& place, int times) {
  Graph graph;
  absl::Status status;
  if (options_.graph) status = Capture(comm, problem, layout, place, times, &graph.exec);
  if (status.ok()) status = rendezvous_->Barrier();
  const int64_t start_ns = MonotonicNanos();
  if (status.ok() && options_.graph) status = CudaStatus(cudaGraphLaunch(graph.exec, stream_.get()), "cudaGraphLaunch");
  if (status.ok() && !options_.graph) status = IssueTimes(comm, problem, layout, place, times);
  if (status.ok()) status = comm->Wait(stream_);
  if (!status.ok()) return status;
  return static_cast<double>(MonotonicNanos() - start_ns) / kMicrosecond;
}

absl::StatusOr<Verdict> Measure::CheckOnce(Communicator* comm, const Problem& problem, const Layout& layout,
                                           const Place& place) {
  Graph graph;
  absl::Status status = Fill(problem, layout, place);
  if (status.ok()) status = comm->Wait(stream_);
  if (status.ok() && options_.graph) {
    status = Capture(comm, problem, layout, place, 1, &graph.exec);
    if (status.ok()) status = CudaStatus(cudaGraphLaunch(graph.exec, stream_.get()), "cudaGraphLaunch");
  } else if (status.ok()) {
    status = Issue(comm, problem, layout, place);
  }
  if (status.ok()) status = comm->Wait(stream_);
  if (!status.ok()) return status;
  const size_t bytes = layout.receive_count * DataTypeBytes(problem.type);
  status = CudaStatus(cudaMemcpyAsync(host_.data(), place.receive, bytes, cudaMemcpyDeviceToHost, stream_.get()),
                      "cudaMemcpyAsync to the host");
  if (status.ok()) status = comm->Wait(stream_);
  if (!status.ok()) return status;
  return Check(problem, layout, host_.data());
}

absl::StatusOr<Timing> Measure::RunPlace(Communicator* comm, const Problem& problem, uint64_t bytes, bool in_place) {
  const Layout layout = LayoutOf(problem.collective, bytes, problem.type, problem.rank, problem.ranks);
  const Place place = PlaceOf(problem, layout, in_place);
  Say(problem, bytes, place, "warm-up");
  absl::Status status = Fill(problem, layout, place);
  if (status.ok()) status = IssueTimes(comm, problem, layout, place, options_.warmup);
  if (status.ok()) status = comm->Wait(stream_);
  if (!status.ok()) return status;
  Say(problem, bytes, place, "timed iterations");
  absl::StatusOr<double> time_us = TimeOnce(comm, problem, layout, place, options_.iterations);
  if (!time_us.ok()) return time_us.status();
  Verdict verdict;
  if (options_.check) {
    Say(problem, bytes, place, "check");
    absl::StatusOr<Verdict> checked = CheckOnce(comm, problem, layout, place);
    if (!checked.ok()) return checked.status();
    verdict = *checked;
    if (verdict.wrong > 0) fprintf(stderr, "nccl_bench: rank %d: %s\n", problem.rank, verdict.first.c_str());
  }
  std::vector<double> sums = {*time_us, static_cast<double>(verdict.wrong)};
  if (status = rendezvous_->Sum(&sums); !status.ok()) return status;
  return Timing{true, sums[0] / problem.ranks / options_.iterations, options_.check, static_cast<uint64_t>(sums[1])};
}

absl::StatusOr<Row> Measure::Run(Communicator* comm, const Problem& problem, uint64_t bytes) {
  const Layout layout = LayoutOf(problem.collective, bytes, problem.type, problem.rank, problem.ranks);
  Row row;
  row.collective = problem.collective;
  row.type = problem.type;
  row.op = problem.op;
  row.root = HasRoot(problem.collective) ? problem.root : -1;
  row.ranks = problem.ranks;
  row.bytes = layout.bytes;
  row.count = layout.count;
  absl::StatusOr<Timing> timing = RunPlace(comm, problem, bytes, false);
  if (!timing.ok()) return timing.status();
  row.out_of_place = *timing;
  if (!RunsInPlace(problem.collective)) return row;
  timing = RunPlace(comm, problem, bytes, true);
  if (!timing.ok()) return timing.status();
  row.in_place = *timing;
  return row;
}

absl::Status Measure::RunChecked(Communicator* comm, Collective collective, DataType type, uint64_t bytes) {
  Problem problem;
  problem.collective = collective;
  problem.type = type;
  problem.rank = comm->rank();
  problem.ranks = comm->ranks();
  problem.seed = options_.seed;
  const Layout layout = LayoutOf(collective, bytes, type, problem.rank, problem.ranks);
  absl::StatusOr<Verdict> verdict = CheckOnce(comm, problem, layout, PlaceOf(problem, layout, false));
  if (!verdict.ok()) return verdict.status();
  if (verdict->wrong == 0) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(verdict->wrong, " elements of ", CollectiveName(collective), " are wrong: ", verdict->first));
}

absl::Status Measure::Flood(Communicator* comm, uint64_t bytes, int times) {
  Problem problem;
  problem.rank = comm->rank();
  problem.ranks = comm->ranks();
  const Layout layout = LayoutOf(problem.collective, bytes, problem.type, problem.rank, problem.ranks);
  return IssueTimes(comm, problem, layout, PlaceOf(problem, layout, false), times);
}

}  // namespace nccl_bench
}  // namespace tcpx
