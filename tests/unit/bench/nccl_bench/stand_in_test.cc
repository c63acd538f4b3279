// Runs nccl_bench from end to end with stand-ins for NCCL and the CUDA runtime (tests/support/fake_nccl), right and
// wrong.
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/program.h"

namespace tcpx {
namespace nccl_bench {
namespace {

std::string Program() { return Runfile("tests/support/fake_nccl/nccl_bench_fake"); }
// With the functions that an NCCL without one-sided transfers lacks.
std::string ProgramWithPuts() { return Runfile("tests/support/fake_nccl/nccl_bench_fake_with_puts"); }

// The stand-in's unique id is a path, and 128 bytes are all it has: the test's own folder may be deeper.
class ShortFolder {
 public:
  ShortFolder() { EXPECT_NE(nullptr, mkdtemp(name_)); }
  ~ShortFolder() { std::filesystem::remove_all(name_); }
  const char* name() const { return name_; }

 private:
  char name_[32] = "/tmp/tcpx_stand_in.XXXXXX";
};

// Output and errors together. `environment` is put before the command.
ProgramResult RunProgram(const std::string& environment, const std::string& arguments) {
  const ShortFolder folder;
  const std::string program = environment.find("FAKE_PUTS") == std::string::npos ? Program() : ProgramWithPuts();
  return RunCommand(std::string("TMPDIR=") + folder.name() + " " + environment + " " + program + " " + arguments);
}

struct Case {
  const char* name;
  const char* environment;
  const char* arguments;
  int code;
  const char* says;
};

// Healthy runs never come near their timeout; hanging ones wait it out.
constexpr Case kCases[] = {
    {"EveryCollective", "", "--local 3 --collective all -d all -o all -b 4 -e 4K -f 32 -n 2 -w 1", 0, "DISTORTED"},
    {"Graphs", "", "--local 2 --collective all --graph -b 999 -n 3", 0, "CUDA graphs"},
    {"EmptyMessages", "", "--local 2 --collective all -b 0 -n 1 -w 0", 0, "# alltoall"},
    {"NoInPlaceForm", "", "--local 2 --collective sendrecv,alltoall -b 64 -n 1", 0,
     "0          -       -       -      -\n# all"},
    {"TwoNets", "", "--local 2 --nets tcpx,Socket -b 64 -e 1K -f 16 -n 2", 0, "# side by side"},
    {"EnoughGpus", "FAKE_GPUS=2", "--local 2 -b 64 -n 1", 0, "# 2 ranks on this machine, 2 GPUs\n"},
    {"OneRankOfAJob", "RANK=0 WORLD_SIZE=1", "-b 64 -n 1", 0, "1 ranks"},
    {"Split", "", "--local 4 --mode split", 0, "4 ranks"},
    {"Classes", "", "--local 2 --mode classes", 0, "2 ranks"},
    {"Abort", "", "--local 2 --mode abort -b 1M", 0, "# abort: rank 1 aborted"},
    {"Killed", "", "--local 3 --mode killed -b 1M", 0, "# killed: rank 1 has its error"},
    {"Reload", "", "--local 2 --mode reload --rounds 3", 0, "# reload: 3 communicators"},
    {"ReloadWithoutAPlugin", "", "--local 2 --nets tcpx --mode reload --rounds 3", 1, "no libnccl-net*.so"},
    {"OneSidedNeedsANewNccl", "", "--local 2 --mode one-sided", 1, "this NCCL has no ncclPutSignal"},
    {"OneSided", "FAKE_PUTS=1", "--local 3 --nets tcpx --mode one-sided", 0, "collectives on windows are right"},
    {"OneSidedWrong", "FAKE_PUTS=1 FAKE_FAULT=flip_puts", "--local 2 --mode one-sided", 1,
     "a put of 8 bytes: byte 1 from rank"},
    {"OneSidedByAnother", "FAKE_PUTS=1 FAKE_FAULT=other_puts", "--local 2 --nets tcpx --mode one-sided", 1,
     "does not say that tcpx does one-sided transfers"},
    {"WrongValues", "FAKE_FAULT=flip", "--local 2 -b 1K -n 1", 1, "values are wrong"},
    // Right results of the timed iterations lie in the buffer when the checked run leaves it alone.
    {"OldValues", "FAKE_FAULT=late", "--local 2 --collective sendrecv -b 1K -w 2 -n 3", 1, "values are wrong"},
    {"WrongValuesInACase", "FAKE_FAULT=flip", "--local 2 --mode classes", 1, "elements of all_reduce are wrong"},
    {"OtherNetwork", "FAKE_FAULT=socket", "--local 2 --nets tcpx -b 1K -n 1", 1, "names the network Socket, not only"},
    {"NoNetwork", "FAKE_FAULT=memory", "--local 2 --nets tcpx -b 1K -n 1", 1, "no channel ran over tcpx"},
    {"Hang", "FAKE_FAULT=hang", "--local 2 -b 1K --timeout 8", 1, "no progress for 8 s, in: all_reduce of float, 1K"},
    {"NoRank", "env -u RANK -u SLURM_PROCID -u OMPI_COMM_WORLD_RANK -u JOB_COMPLETION_INDEX", "-b 1K", 2, "--local N"},
    {"RootThatIsNoRank", "RANK=0 WORLD_SIZE=1", "-r 1", 2, "-r 1 is not one of the 1 ranks"},
    {"NoGpu", "FAKE_GPUS=0", "--local 2", 1, "nccl_bench: no CUDA device"},
};

class StandIn : public testing::TestWithParam<Case> {};

TEST_P(StandIn, EndsAsItShould) {
  if (access(Program().c_str(), X_OK) != 0) {
    GTEST_SKIP() << "SKIPPED: nccl_bench is not built: no NCCL or no CUDA runtime on this machine";
  }
  const ProgramResult result = RunProgram(GetParam().environment, GetParam().arguments);
  EXPECT_EQ(result.code, GetParam().code) << result.output;
  EXPECT_NE(result.output.find(GetParam().says), std::string::npos) << GetParam().says << " in\n" << result.output;
}

INSTANTIATE_TEST_SUITE_P(All, StandIn, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<Case>& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
