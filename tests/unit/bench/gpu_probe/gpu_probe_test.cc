// The program itself, as far as it goes without a GPU.
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"
#include "tests/support/program.h"

namespace tcpx {
namespace gpu_probe {
namespace {

std::string Program() { return Runfile("bench/gpu_probe/gpu_probe"); }

class GpuProbe : public testing::Test {
 protected:
  void SetUp() override {
    if (access(Program().c_str(), X_OK) != 0) GTEST_SKIP() << "SKIPPED: gpu_probe is not built: no CUDA headers";
  }
};

TEST_F(GpuProbe, WithoutAGpuItIsThreeAndOneLine) {
  const ProgramResult result = RunCommand("CUDA_VISIBLE_DEVICES='' " + Program());
  EXPECT_EQ(result.code, 3) << result.output;
  EXPECT_EQ(result.output.find("gpu_probe: no GPU here: nothing was measured ("), 0u) << result.output;
  EXPECT_EQ(result.output.find('\n'), result.output.size() - 1) << result.output;
}

TEST_F(GpuProbe, WrongUsageIsTwo) {
  const ProgramResult result = RunCommand(Program() + " --helf");
  EXPECT_EQ(result.code, 2) << result.output;
  EXPECT_NE(result.output.find("usage: gpu_probe"), std::string::npos) << result.output;
}

}  // namespace
}  // namespace gpu_probe
}  // namespace tcpx
