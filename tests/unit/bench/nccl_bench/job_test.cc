#include "bench/nccl_bench/job.h"

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

using Variables = std::map<std::string, std::string>;

absl::StatusOr<Job> JobOf(const Variables& variables) {
  return JobFromEnvironment([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

struct Right {
  const char* name;
  Variables variables;
  int rank;
  int size;
  int local_rank;
  const char* host;
  int port;
};

TEST(JobFromEnvironment, UnderstandsEveryLauncher) {
  const std::vector<Right> rows = {
      {"torchrun",
       {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "n0"}, {"MASTER_PORT", "29500"}},
       3,
       8,
       1,
       "n0",
       29500},
      {"a pod", {{"RANK", "0"}, {"SIZE", "2"}, {"MASTER_ADDR", "::1"}}, 0, 2, -1, "::1", kDefaultMasterPort},
      {"WORLD_SIZE before SIZE",
       {{"RANK", "2"}, {"WORLD_SIZE", "4"}, {"SIZE", "2"}, {"MASTER_ADDR", "h"}},
       2,
       4,
       -1,
       "h",
       kDefaultMasterPort},
      {"RANK before Slurm",
       {{"RANK", "1"}, {"SIZE", "2"}, {"MASTER_ADDR", "h"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}},
       1,
       2,
       -1,
       "h",
       kDefaultMasterPort},
      {"srun",
       {{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "16"}, {"SLURM_LOCALID", "1"}, {"SLURM_JOB_NODELIST", "gpu[07-10],x"}},
       5,
       16,
       1,
       "gpu07",
       kDefaultMasterPort},
      {"a step smaller than its job",
       {{"SLURM_PROCID", "1"},
        {"SLURM_STEP_NUM_TASKS", "2"},
        {"SLURM_NTASKS", "16"},
        {"SLURM_STEP_NODELIST", "b"},
        {"SLURM_JOB_NODELIST", "a,b"}},
       1,
       2,
       -1,
       "b",
       kDefaultMasterPort},
      {"mpirun on one machine",
       {{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "4"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}},
       1,
       4,
       1,
       "127.0.0.1",
       kDefaultMasterPort},
      {"an indexed job",
       {{"JOB_COMPLETION_INDEX", "2"}, {"SIZE", "3"}, {"MASTER_ADDR", "job-0.svc"}},
       2,
       3,
       -1,
       "job-0.svc",
       kDefaultMasterPort},
      {"alone", {{"RANK", "0"}, {"WORLD_SIZE", "1"}}, 0, 1, -1, "127.0.0.1", kDefaultMasterPort},
  };
  for (const Right& row : rows) {
    absl::StatusOr<Job> job = JobOf(row.variables);
    ASSERT_TRUE(job.ok()) << row.name << ": " << job.status();
    EXPECT_EQ(job->rank, row.rank) << row.name;
    EXPECT_EQ(job->size, row.size) << row.name;
    EXPECT_EQ(job->local_rank, row.local_rank) << row.name;
    EXPECT_EQ(job->master_host, row.host) << row.name;
    EXPECT_EQ(job->master_port, row.port) << row.name;
  }
}

struct Wrong {
  Variables variables;
  const char* names;  // what the message must name
};

TEST(JobFromEnvironment, SaysWhatIsMissingOrWrong) {
  const std::vector<Wrong> rows = {
      {{}, "--local N"},
      {{{"RANK", "0"}}, "WORLD_SIZE is not"},
      {{{"RANK", "x"}, {"SIZE", "2"}}, "RANK is 'x'"},
      {{{"RANK", "2"}, {"SIZE", "2"}}, "RANK is '2'"},
      {{{"RANK", "-1"}, {"SIZE", "2"}}, "RANK is '-1'"},
      {{{"RANK", "0"}, {"SIZE", "0"}}, "SIZE is '0'"},
      {{{"RANK", "0"}, {"SIZE", "2"}}, "MASTER_ADDR"},
      {{{"RANK", "0"}, {"SIZE", "2"}, {"MASTER_ADDR", "h"}, {"MASTER_PORT", "70000"}}, "MASTER_PORT"},
      {{{"JOB_COMPLETION_INDEX", "0"}}, "WORLD_SIZE"},
      {{{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       "MASTER_ADDR"},
  };
  for (const Wrong& row : rows) {
    const absl::Status status = JobOf(row.variables).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << row.names;
    EXPECT_NE(status.message().find(row.names), absl::string_view::npos) << status;
  }
}

TEST(FirstHost, ExpandsTheFirstOnly) {
  EXPECT_EQ(FirstHost("node1"), "node1");
  EXPECT_EQ(FirstHost("node1,node2"), "node1");
  EXPECT_EQ(FirstHost("a,b[1-2]"), "a");
  EXPECT_EQ(FirstHost("node[03-05,9],x"), "node03");
  EXPECT_EQ(FirstHost("node[7,9]"), "node7");
  EXPECT_EQ(FirstHost("rack[1-2].example,y"), "rack1.example");
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
