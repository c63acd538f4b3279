// The doctor's command line.
#include "tools/doctor/command.h"

#include "absl/strings/match.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace doctor {
namespace {

TEST(Command, HasDefaults) {
  const auto command = ParseCommand({});
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->ranks, 0);
  EXPECT_EQ(command->gpus, 1);
  EXPECT_FALSE(command->json);
}

TEST(Command, TakesEachOption) {
  const auto command = ParseCommand(
      {"--ranks", "8", "--gpus=2", "--rtt-us", "100", "--json", "--quiet", "--plugin", "/a.so", "--nccl", "/b.so"});
  ASSERT_TRUE(command.ok()) << command.status();
  EXPECT_EQ(command->ranks, 8);
  EXPECT_EQ(command->gpus, 2);
  EXPECT_EQ(command->rtt_us, 100);
  EXPECT_TRUE(command->json && command->quiet);
  EXPECT_EQ(command->plugin, "/a.so");
  EXPECT_EQ(command->nccl, "/b.so");
}

TEST(Command, SaysWhatIsWrong) {
  for (const auto& wrong : std::vector<std::vector<std::string>>{
           {"--nosuch"}, {"--ranks"}, {"--ranks", "0"}, {"--ranks", "many"}, {"--gpus", "65"}}) {
    const auto command = ParseCommand(wrong);
    ASSERT_FALSE(command.ok()) << wrong[0];
    EXPECT_TRUE(absl::StrContains(command.status().message(), wrong[0])) << command.status();
  }
}

TEST(Command, HelpNamesEveryOption) {
  for (const char* option : {"--ranks", "--gpus", "--rtt-us", "--plugin", "--nccl", "--json", "--quiet", "--help"}) {
    EXPECT_TRUE(absl::StrContains(UsageText(), option)) << option;
  }
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx
