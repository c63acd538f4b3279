#include "bench/nccl_bench/rank.h"

#include <stdio.h>
#include <stdlib.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bench/nccl_bench/cases.h"
#include "bench/nccl_bench/launch.h"
#include "bench/nccl_bench/measure.h"
#include "bench/nccl_bench/nccl_log.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// Warnings of NCCL shown when a rank fails; the first ones name the cause.
constexpr int kWarningsShown = 10;

int FileFromEnvironment(const char* name) {
  int fd = -1;
  return absl::SimpleAtoi(ProcessEnvironment(name), &fd) ? fd : -1;
}

std::string ReadNcclLog() {
  fflush(nullptr);  // NCCL's file is one of this process' streams.
  std::ifstream file(ProcessEnvironment("NCCL_DEBUG_FILE"));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void ShowWarnings() {
  if (ProcessEnvironment("NCCL_DEBUG_FILE").empty()) return;
  const std::string text = ReadNcclLog();
  int shown = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    if (absl::StrContains(line, "NCCL WARN") && shown++ < kWarningsShown) {
      fprintf(stderr, "%s\n", std::string(line).c_str());
    }
  }
}

class Rank {
 public:
  Rank(const Options& options, Job job, int devices)
      : options_(options),
        job_(std::move(job)),
        device_((job_.local_rank >= 0 ? job_.local_rank : job_.rank) % devices),
        net_(ProcessEnvironment(kNetVariable)),
        rows_fd_(job_.rank == 0 ? FileFromEnvironment(kRowsVariable) : -1),
        watchdog_(absl::StrCat("nccl_bench: rank ", job_.rank), options.timeout_s) {}

  absl::Status Run() {
    absl::Status status = Start();
    if (status.ok()) status = options_.mode == Mode::kBench ? RunBench() : RunOther();
    if (status.ok() && !net_.empty()) status = JudgeNetwork();
    return status;
  }

  std::string place() const { return watchdog_.place(); }

 private:
  absl::Status Start() {
    watchdog_.Enter("meeting the other ranks");
    OwnedFd listener(job_.rank == 0 ? FileFromEnvironment(kListenerVariable) : -1);
    auto met = Rendezvous::Meet(job_, options_.timeout_s, std::move(listener));
    if (!met.ok()) return met.status();
    rendezvous_ = std::move(*met);
    watchdog_.Enter("choosing the GPU");
    absl::Status status = CudaStatus(cudaSetDevice(device_), "cudaSetDevice");
    measure_ = std::make_unique<Measure>(options_, rendezvous_.get(), &watchdog_);
    if (status.ok())
      status = measure_->Prepare(options_.mode == Mode::kBench ? options_.sizes.back() : CaseBytes(options_));
    if (status.ok() && job_.rank == 0) {
      printf("# nccl_bench: %s, %d ranks%s\n", DescribeDevice(device_).c_str(), job_.size,
             options_.graph ? ", CUDA graphs" : "");
    }
    return status;
  }

  absl::Status RunOther() { return RunCase({options_, job_, rendezvous_.get(), &watchdog_, measure_.get()}); }

  absl::Status RunBench() {
    watchdog_.Enter("making the communicator");
    absl::StatusOr<std::unique_ptr<Communicator>> comm = Communicator::Create(job_, rendezvous_.get());
    if (!comm.ok()) return comm.status();
    for (Collective collective : options_.collectives) {
      if (absl::Status status = RunCollective(comm->get(), collective); !status.ok()) return status;
    }
    watchdog_.Enter("closing the communicator");
    if (absl::Status status = (*comm)->Close(); !status.ok()) return status;
    return wrong_ == 0 ? absl::OkStatus() : absl::DataLossError(absl::StrCat(wrong_, " values are wrong"));
  }

  absl::Status RunCollective(Communicator* comm, Collective collective) {
    if (job_.rank == 0) printf("# %s\n%s", CollectiveName(collective), TableHeader().c_str());
    for (DataType type : options_.types) {
      for (RedOp op : options_.ops) {
        if (absl::Status status =
                RunSizes(comm, {collective, type, op, options_.root, job_.rank, job_.size, options_.seed});
            !status.ok()) {
          return status;
        }
        if (!Reduces(collective)) break;
      }
    }
    return absl::OkStatus();
  }

  absl::Status RunSizes(Communicator* comm, const Problem& problem) {
    for (uint64_t bytes : options_.sizes) {
      absl::StatusOr<Row> row = measure_->Run(comm, problem, bytes);
      if (!row.ok()) return row.status();
      wrong_ += row->out_of_place.wrong + row->in_place.wrong;
      if (job_.rank != 0) continue;
      fputs(TableLine(*row).c_str(), stdout);
      fflush(stdout);
      if (rows_fd_ >= 0) dprintf(rows_fd_, "%s\n", FormatRow(*row).c_str());
    }
    return absl::OkStatus();
  }

  // A rank between others of its host may have no channel over the network; the job as a whole must.
  absl::Status JudgeNetwork() {
    watchdog_.Enter("reading NCCL's log");
    TransportLog log = ParseNcclLog(ReadNcclLog());
    std::vector<double> sums = {static_cast<double>(log.net_channels), static_cast<double>(log.byte_lines),
                                static_cast<double>(log.bytes)};
    const bool all_live = options_.mode != Mode::kKilled;
    if (absl::Status status = all_live ? rendezvous_->Sum(&sums) : absl::OkStatus(); !status.ok()) return status;
    log.net_channels = static_cast<int>(sums[0]);
    log.byte_lines = static_cast<int>(sums[1]);
    log.bytes = static_cast<uint64_t>(sums[2]);
    const bool moves = options_.mode != Mode::kBench || options_.sizes.back() > 0;
    if (job_.rank == 0) printf("# %s\n", DescribeTransport(log, net_).c_str());
    return JudgeTransport(log, net_, job_.size > 1 && moves);
  }

  const Options& options_;
  const Job job_;
  const int device_;
  const std::string net_;
  const int rows_fd_;
  Watchdog watchdog_;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<Measure> measure_;
  uint64_t wrong_ = 0;
};

}  // namespace

int RunRank(const Options& options, int devices) {
  absl::StatusOr<Job> job = JobFromEnvironment(ProcessEnvironment);
  if (!job.ok()) {
    fprintf(stderr, "nccl_bench: %s\n", std::string(job.status().message()).c_str());
    return 2;
  }
  if (options.root >= job->size) {
    fprintf(stderr, "nccl_bench: -r %d is not one of the %d ranks\n", options.root, job->size);
    return 2;
  }
  Rank rank(options, *job, devices);
  const absl::Status status = rank.Run();
  if (status.ok()) return 0;
  fprintf(stderr, "nccl_bench: rank %d: %s (in: %s)\n", job->rank, std::string(status.message()).c_str(),
          rank.place().c_str());
  ShowWarnings();
  return 1;
}

}  // namespace nccl_bench
}  // namespace tcpx
