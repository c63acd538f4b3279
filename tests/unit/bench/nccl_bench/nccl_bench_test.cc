// The program itself: usage everywhere, and what it says where no GPU is.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

std::string Program() {
  const char* root = getenv("TEST_SRCDIR");
  const char* workspace = getenv("TEST_WORKSPACE");
  return std::string(root == nullptr ? "." : root) + "/" + (workspace == nullptr ? "" : workspace) +
         "/bench/nccl_bench/nccl_bench";
}

struct Result {
  int code = -1;  // -1: ended by a signal
  std::string output;
};

// Output and errors together.
Result RunProgram(const std::string& arguments) {
  Result result;
  FILE* pipe = popen(("CUDA_VISIBLE_DEVICES='' " + Program() + " " + arguments + " 2>&1 </dev/null").c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof(buffer), pipe)) result.output.append(buffer, got);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
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
  const Result result = RunProgram("--help");
  EXPECT_EQ(result.code, 0) << result.output;
  EXPECT_NE(result.output.find("usage: nccl_bench"), std::string::npos) << result.output;
}

TEST_F(NcclBench, WrongUsageIsTwo) {
  const Result result = RunProgram("--mode nothing");
  EXPECT_EQ(result.code, 2) << result.output;
  EXPECT_NE(result.output.find("nccl_bench: --mode: 'nothing'"), std::string::npos) << result.output;
}

TEST_F(NcclBench, WithoutAGpuItIsOneAndOneLine) {
  const Result result = RunProgram("--local 2 --nets tcpx,Socket");
  EXPECT_EQ(result.code, 1) << result.output;
  EXPECT_EQ(result.output.find("nccl_bench: no CUDA device"), 0u) << result.output;
  EXPECT_EQ(result.output.find('\n'), result.output.size() - 1) << result.output;
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
