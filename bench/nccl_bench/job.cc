#include "bench/nccl_bench/job.h"

#include <stdlib.h>

#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace tcpx {
namespace nccl_bench {
namespace {

// The names of one launcher, each list in the order of preference.
struct Launcher {
  const char* rank;
  std::initializer_list<const char*> size;
  std::initializer_list<const char*> local_rank;
  std::initializer_list<const char*> local_size;
};

const Launcher kLaunchers[] = {
    {"RANK", {"WORLD_SIZE", "SIZE"}, {"LOCAL_RANK"}, {"LOCAL_WORLD_SIZE"}},
    {"SLURM_PROCID", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"}, {"SLURM_LOCALID"}, {}},
    {"OMPI_COMM_WORLD_RANK", {"OMPI_COMM_WORLD_SIZE"}, {"OMPI_COMM_WORLD_LOCAL_RANK"}, {"OMPI_COMM_WORLD_LOCAL_SIZE"}},
    {"JOB_COMPLETION_INDEX", {"WORLD_SIZE", "SIZE"}, {"LOCAL_RANK"}, {}},
};

// The name of the first that is set; null when none is.
const char* FirstSet(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (!environment(name).empty()) return name;
  }
  return nullptr;
}

absl::StatusOr<int> Number(const Environment& environment, const char* name, int min, int max) {
  const std::string text = environment(name);
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < min || value > max) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is '", text, "', not a number from ", min, " to ", max));
  }
  return value;
}

// Above any job; keeps sums of ranks far from overflow.
constexpr int kRanksMax = 1 << 20;

absl::Status ReadSize(const Environment& environment, const Launcher& launcher, Job* job) {
  const char* name = FirstSet(environment, launcher.size);
  if (name == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(launcher.rank, " is set but ", *launcher.size.begin(), " is not: how many ranks are there?"));
  }
  absl::StatusOr<int> size = Number(environment, name, 1, kRanksMax);
  if (!size.ok()) return size.status();
  job->size = *size;
  absl::StatusOr<int> rank = Number(environment, launcher.rank, 0, job->size - 1);
  if (!rank.ok()) return rank.status();
  job->rank = *rank;
  return absl::OkStatus();
}

absl::Status ReadMaster(const Environment& environment, const Launcher& launcher, Job* job) {
  job->master_host = environment("MASTER_ADDR");
  const char* local_size = FirstSet(environment, launcher.local_size);
  const bool all_here = job->size == 1 || (local_size != nullptr && environment(local_size) == absl::StrCat(job->size));
  if (job->master_host.empty() && all_here) job->master_host = "127.0.0.1";
  if (job->master_host.empty() && job->launcher == "SLURM_PROCID") {
    const char* list = FirstSet(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
    if (list != nullptr) job->master_host = FirstHost(environment(list));
  }
  if (job->master_host.empty()) {
    return absl::InvalidArgumentError("MASTER_ADDR is not set: at which host or address is rank 0 met?");
  }
  if (environment("MASTER_PORT").empty()) return absl::OkStatus();
  absl::StatusOr<int> port = Number(environment, "MASTER_PORT", 1, 65535);
  if (port.ok()) job->master_port = *port;
  return port.status();
}

}  // namespace

std::string ProcessEnvironment(const std::string& name) {
  const char* value = getenv(name.c_str());
  return value == nullptr ? "" : value;
}

std::string FirstHost(absl::string_view list) {
  const size_t end = list.find_first_of(",[");
  std::string host(list.substr(0, end));
  if (end == absl::string_view::npos || list[end] == ',') return host;
  const absl::string_view numbers = list.substr(end + 1);
  absl::StrAppend(&host, numbers.substr(0, numbers.find_first_of("-,]")));
  const size_t close = numbers.find(']');
  if (close == absl::string_view::npos) return host;
  const absl::string_view rest = numbers.substr(close + 1);  // A suffix, such as a domain.
  return absl::StrCat(host, rest.substr(0, rest.find(',')));
}

absl::StatusOr<Job> JobFromEnvironment(const Environment& environment) {
  for (const Launcher& launcher : kLaunchers) {
    if (environment(launcher.rank).empty()) continue;
    Job job;
    job.launcher = launcher.rank;
    absl::Status status = ReadSize(environment, launcher, &job);
    if (status.ok()) status = ReadMaster(environment, launcher, &job);
    if (!status.ok()) return status;
    if (const char* name = FirstSet(environment, launcher.local_rank); name != nullptr) {
      absl::StatusOr<int> local = Number(environment, name, 0, kRanksMax);
      if (!local.ok()) return local.status();
      job.local_rank = *local;
    }
    return job;
  }
  return absl::InvalidArgumentError(
      "no rank: give --local N, or set RANK, WORLD_SIZE and MASTER_ADDR, or start it with a launcher");
}

}  // namespace nccl_bench
}  // namespace tcpx
