// Where the progress threads run, and for how many GPUs there are any.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

std::string LineOf(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (absl::StartsWith(line, key)) return line;
  }
  return "";
}

// The threads whose name begins with tcpx-io and whose mask is `allowed`, a line of a status file.
int ProgressThreads(const std::string& allowed) {
  int count = 0;
  DIR* tasks = opendir("/proc/self/task");
  TCPX_REQUIRE(tasks != nullptr);
  while (const dirent* entry = readdir(tasks)) {
    const std::string status = absl::StrCat("/proc/self/task/", entry->d_name, "/status");
    const bool ours = absl::StrContains(LineOf(status, "Name:"), "tcpx-io");
    count += ours && LineOf(status, "Cpus_allowed_list:") == allowed ? 1 : 0;
  }
  closedir(tasks);
  return count;
}

// As NCCL does with a thread that initializes a communicator, once the plugin is loaded.
void BindToOneCpu() {
  cpu_set_t set;
  CPU_ZERO(&set);
  TCPX_REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &set)) ++cpu;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  TCPX_REQUIRE(sched_setaffinity(0, sizeof(set), &set) == 0);
}

class PlacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mode{.threads = 2, .engine = "auto", .lanes = 4}.Apply();
    unsetenv("TCPX_CPUS");
  }
};

TEST_F(PlacesTest, ThreadsLeaveTheMaskOfTheirCreator) {
  EXPECT_EQ("", RunAlone([] {
              const std::string before = LineOf("/proc/self/status", "Cpus_allowed_list:");
              Rank rank;
              BindToOneCpu();
              const Ends ends = rank.ConnectToSelf();
              TCPX_REQUIRE(ProgressThreads(before) == 2, LogText());
              rank.Close(ends);
              rank.Finalize();
              TCPX_REQUIRE(WarningCount() == 0, LogText());
            }));
}

TEST_F(PlacesTest, TheUsersListComesFirst) {
  EXPECT_EQ("", RunAlone([] {
              cpu_set_t set;
              CPU_ZERO(&set);
              TCPX_REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
              int last = CPU_SETSIZE - 1;
              while (!CPU_ISSET(last, &set)) --last;
              setenv("TCPX_CPUS", absl::StrCat(last).c_str(), 1);
              Rank rank;
              const Ends ends = rank.ConnectToSelf();
              TCPX_REQUIRE(ProgressThreads(absl::StrCat("Cpus_allowed_list:\t", last)) == 2, LogText());
              rank.Close(ends);
              rank.Finalize();
            }));
}

// Each GPU of a process has a context of the same communicator.
TEST_F(PlacesTest, GpusOfTheProcessAreCounted) {
  EXPECT_EQ("", RunAlone([] {
              unsetenv("TCPX_THREADS");
              Rank rank;
              rank.NewContext();
              rank.NewContext();
              const Ends ends = rank.ConnectToSelf();
              TCPX_REQUIRE(LogHas(" for 3 gpus on 1 device"), LogText());
              rank.Close(ends);
              rank.Finalize();
            }));
}

}  // namespace
}  // namespace tcpx
