// The doctor's command line.
#include "tools/doctor/command.h"

#include <stdlib.h>

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

TEST(Command, WordsInFrontSayWhatIsDone) {
  const auto listen = ParseCommand({"listen", "--port", "5", "--until-eof"});
  ASSERT_TRUE(listen.ok()) << listen.status();
  EXPECT_EQ(listen->mode, Mode::kListen);
  EXPECT_EQ(listen->port, 5);
  const auto between = ParseCommand({"node7", "--ms", "0"});
  ASSERT_TRUE(between.ok()) << between.status();
  EXPECT_EQ(between->mode, Mode::kBetween);
  EXPECT_EQ(between->host, "node7");
  const auto hosts = ParseCommand({"hosts", "file", "--start", "srun -w {host}"});
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(hosts->mode, Mode::kHosts);
  EXPECT_EQ(hosts->hosts_file, "file");
  EXPECT_EQ(hosts->start, "srun -w {host}");
}

TEST(Command, HostsAndParametersAreOptionsToo) {
  const auto hosts = ParseCommand({"--hosts", "file", "--at-once", "3"});
  ASSERT_TRUE(hosts.ok()) << hosts.status();
  EXPECT_EQ(hosts->at_once, 3);
  EXPECT_EQ(hosts->milliseconds, 200);
  EXPECT_EQ(hosts->mode, Mode::kHosts);
  EXPECT_EQ(hosts->hosts_file, "file");
  const auto parameters = ParseCommand({"--parameters", "--json"});
  ASSERT_TRUE(parameters.ok()) << parameters.status();
  EXPECT_EQ(parameters->mode, Mode::kParameters);
  EXPECT_TRUE(parameters->json);
}

TEST(Command, HostsAreStartedByTheLauncherOfTheJob) {
  unsetenv("SLURM_JOB_ID");
  EXPECT_EQ(DefaultStart(), "ssh -o BatchMode=yes {host}");
  setenv("SLURM_JOB_ID", "7", 1);
  EXPECT_TRUE(absl::StartsWith(DefaultStart(), "srun --overlap "));
  unsetenv("SLURM_JOB_ID");
}

TEST(Command, OptionsOfOtherModesAreRefused) {
  for (const auto& wrong : std::vector<std::vector<std::string>>{{"--port", "5"},
                                                                 {"--ms", "5"},
                                                                 {"node7", "--until-eof"},
                                                                 {"node7", "--port", "0"},
                                                                 {"hosts"},
                                                                 {"--hosts"},
                                                                 {"--parameters", "--ms", "5"},
                                                                 {"listen", "--ms", "5"},
                                                                 {"node7", "--at-once", "2"},
                                                                 {"node7", "node8"}}) {
    EXPECT_FALSE(ParseCommand(wrong).ok()) << wrong[0];
  }
}

TEST(Command, HelpNamesEveryOption) {
  for (const char* option :
       {"--ranks", "--gpus", "--rtt-us", "--plugin", "--nccl", "--json", "--quiet", "--help", "--port", "--until-eof",
        "--ms", "--summary", "--start", "--remote", "--at-once", "--hosts", "--parameters"}) {
    EXPECT_TRUE(absl::StrContains(UsageText(), option)) << option;
  }
}

TEST(Command, PlansAJob) {
  const auto plan = ParseCommand(
      {"plan", "--hosts", "64", "--ranks-per-host=8", "--channels", "2", "--pattern", "alltoall", "--json"});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->mode, Mode::kPlan);
  EXPECT_EQ(plan->job.hosts, 64);
  EXPECT_EQ(plan->job.ranks, 8);
  EXPECT_EQ(plan->job.channels, 2);
  EXPECT_EQ(plan->job.pattern, Pattern::kAllToAll);
  EXPECT_TRUE(plan->json);
}

TEST(Command, SaysWhatAPlanLacks) {
  const std::vector<std::string> whole = {"plan", "--hosts",   "2",   "--ranks-per-host", "1", "--channels",
                                          "1",    "--pattern", "ring"};
  ASSERT_TRUE(ParseCommand(whole).ok());
  for (size_t i = 1; i < whole.size(); i += 2) {
    std::vector<std::string> part = whole;
    part.erase(part.begin() + static_cast<int>(i), part.begin() + static_cast<int>(i) + 2);
    const auto command = ParseCommand(part);
    ASSERT_FALSE(command.ok()) << whole[i];
    EXPECT_EQ(command.status().message(), "plan needs " + whole[i]);
    for (const char* wrong : {"0", "star"}) {
      part = whole;
      part[i + 1] = wrong;
      const auto refused = ParseCommand(part);
      ASSERT_FALSE(refused.ok()) << whole[i] << wrong;
      EXPECT_TRUE(absl::StrContains(refused.status().message(), whole[i])) << refused.status();
    }
  }
  EXPECT_FALSE(ParseCommand({"plan", "--port", "1"}).ok());
  EXPECT_TRUE(ParseCommand({"plan", "--help"}).ok());
}

// No figure of a job that is accepted overflows: plan_test.
TEST(Command, RefusesAPlanThatIsTooLarge) {
  const auto refused = ParseCommand(
      {"plan", "--hosts", "65536", "--ranks-per-host", "256", "--channels", "65536", "--pattern", "alltoall"});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().message(),
            "the job has 281470681743360 connections for each host; plan computes up to 1000000000");
  EXPECT_TRUE(
      ParseCommand({"plan", "--hosts", "65536", "--ranks-per-host", "256", "--channels", "65536", "--pattern", "ring"})
          .ok());
  EXPECT_TRUE(
      ParseCommand({"plan", "--hosts", "15259", "--ranks-per-host", "256", "--channels", "1", "--pattern", "alltoall"})
          .ok());
}

}  // namespace
}  // namespace doctor
}  // namespace tcpx
