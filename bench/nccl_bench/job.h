// job.h: which rank of how many this process is, and where rank 0 is met, as launchers say it.
//
// Purpose: one answer from the variables of torchrun and plain scripts (RANK), Slurm, Open MPI and Kubernetes indexed
//          jobs, looked at in this order; the first that names a rank decides.
// Threads: any; pure, the environment comes in as a function.
// Errors:  kInvalidArgument with the variable that is missing or wrong.
// Source:  srun(1) OUTPUT ENVIRONMENT VARIABLES; Open MPI's mpirun(1) (OMPI_COMM_WORLD_*); Kubernetes, "Indexed Job"
//          (JOB_COMPLETION_INDEX).
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {
namespace nccl_bench {

// Where rank 0 is met when MASTER_PORT is not set. From the unassigned part of IANA's user ports.
inline constexpr int kDefaultMasterPort = 23101;

struct Job {
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // -1: nobody said
  std::string master_host;
  int master_port = kDefaultMasterPort;
  std::string launcher;  // the variable that named the rank
};

// The value of a variable; empty when it is not set. An empty value counts as not set.
using Environment = std::function<std::string(const std::string& name)>;
std::string ProcessEnvironment(const std::string& name);

absl::StatusOr<Job> JobFromEnvironment(const Environment& environment);

// The first host of a Slurm list: "node[03-05,9],x" -> "node03".
std::string FirstHost(absl::string_view list);

}  // namespace nccl_bench
}  // namespace tcpx
