#include "bench/nccl_bench/children.h"

#include <stdlib.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace nccl_bench {
namespace {

Child Shell(const std::string& script) {
  Child child;
  child.name = "child";
  child.arguments = {"/bin/sh", "-c", script};
  return child;
}

// Longer than any test may take: a child that sleeps so long must be ended.
constexpr char kForever[] = "exec sleep 1000";

TEST(RunChildren, CountsFailures) {
  EXPECT_EQ(RunChildren({Shell("exit 0"), Shell("exit 0")}, {}), 0);
  EXPECT_EQ(RunChildren({Shell("exit 0"), Shell("exit 3")}, {}), 1);
  EXPECT_EQ(RunChildren({Shell("kill -9 $$")}, {}), 1);
}

TEST(RunChildren, AProgramThatIsNotThereFails) {
  Child child = Shell("");
  child.arguments = {"/nonexistent/program"};
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunChildren({child}, {}), 1);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("could not be started: /nonexistent/program"), std::string::npos) << said;
}

TEST(RunChildren, SetsAndRemovesVariables) {
  setenv("TCPX_TEST_STAYS", "stays", 1);
  setenv("TCPX_TEST_GOES", "goes", 1);
  Child child = Shell("test \"$TCPX_TEST_STAYS-${TCPX_TEST_GOES-unset}-$TCPX_TEST_NEW\" = stays-unset-new");
  child.environment = {{"TCPX_TEST_GOES", ""}, {"TCPX_TEST_NEW", "new"}};
  EXPECT_EQ(RunChildren({child}, {}), 0);
}

TEST(RunChildren, OneFailureEndsTheOthers) {
  ChildLimits limits;
  limits.grace_s = 0;
  testing::internal::CaptureStderr();
  EXPECT_EQ(RunChildren({Shell(kForever), Shell("exit 1")}, limits), 2);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("ended with exit code 1"), std::string::npos) << said;
  EXPECT_NE(said.find("was ended, after the others"), std::string::npos) << said;
}

TEST(RunChildren, AStragglerIsEnded) {
  ChildLimits limits;
  limits.straggler_s = 0;
  EXPECT_EQ(RunChildren({Shell(kForever), Shell("exit 0")}, limits), 1);
}

TEST(RunChildren, OneKilledOnPurposeIsNoFailure) {
  ChildLimits limits;
  limits.grace_s = 0;
  limits.straggler_s = 0;
  Child victim = Shell("kill -9 $$");
  victim.killed_on_purpose = true;
  // Outlives the victim by far more than the limits, which do not count for it.
  EXPECT_EQ(RunChildren({Shell("sleep 0.3"), victim}, limits), 0);
  victim.arguments = {"/bin/sh", "-c", "exit 0"};
  EXPECT_EQ(RunChildren({victim}, limits), 1) << "it had to be killed";
}

}  // namespace
}  // namespace nccl_bench
}  // namespace tcpx
