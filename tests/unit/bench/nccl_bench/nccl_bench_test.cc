// The program itself: usage everywhere, and what it says where no GPU is.
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/support/program.h"

namespace tcpx {
namespace nccl_bench {
namespace {

std::string Program() { return Runfile("bench/nccl_bench/nccl_bench"); }

// Output and errors together.
ProgramResult RunProgram(const std::string& arguments) {
  return RunCommand("CUDA_VISIBLE_DEVICES='' " + Program() + " " + arguments);
}

class NcclBench : public testing::Test {
 protected:
  void SetUp() override {
    if (access(Program().c_str(), X_OK) != 0) {
      GTEST_SKIP() << "SKIPPED: nccl_bench is not built: no NCCL or no CUDA runtime on this machine";
    }
  }
};

TEST_F(NcclBench, HelpNeedsNoGpu) {
  const ProgramResult result = RunProgram("--help");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("usage: nccl_bench"), std::string::npos) << result.output;
}

TEST_F(NcclBench, WrongUsageIsTwo) {
  const ProgramResult result = RunProgram("--mode nothing");
  EXPECT_EQ(result.code, 2) << result.output;
  EXPECT_NE(result.output.find("nccl_bench: --mode: 'nothing'"), std::string::npos) << result.output;
}

TEST_F(NcclBench, WithoutAGpuItIsOneAndOneLine) {
  const ProgramResult result = RunProgram("--local 2 --nets tcpx,Socket");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_EQ(result.output.find("nccl_bench: no CUDA device"), 0u) << result.output;
  EXPECT_EQ(result.output.find('\n'), result.output.size() - 1) << result.output;
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
