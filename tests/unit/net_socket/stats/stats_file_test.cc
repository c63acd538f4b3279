#include "net_socket/stats/stats_file.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utime.h>

#include <atomic>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/this_host.h"
#include "tests/support/kept_log.h"
#include "tests/support/small_disk.h"

namespace tcpx {
namespace {

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class StatsFileTest : public testing::Test {
 protected:
  StatsFileTest() {
    std::string name = testing::TempDir() + "/stats.XXXXXX";
    dir_ = mkdtemp(name.data());
    process_.host = "node-1";
    process_.pid = getpid();
  }
  std::set<std::string> Names() const {
    std::set<std::string> names;
    DIR* const folder = opendir(dir_.c_str());
    while (const dirent* entry = readdir(folder)) names.insert(entry->d_name);
    closedir(folder);
    names.erase(".");
    names.erase("..");
    return names;
  }
  // Written so long ago.
  std::string Old(const std::string& name, int seconds) const {
    const std::string path = absl::StrCat(dir_, "/", name);
    std::ofstream(path) << "old";
    const utimbuf times{time(nullptr) - seconds, time(nullptr) - seconds};
    utime(path.c_str(), &times);
    return name;
  }
  static int DeadPid() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    return child;
  }

  std::string dir_;
  ProcessNumbers process_;
  bool warned_ = false;
};

TEST_F(StatsFileTest, IsThereExactlyWhileTheObjectLives) {
  {
    StatsFile file(dir_, process_, &warned_);
    EXPECT_TRUE(absl::StartsWith(file.path(), absl::StrCat(dir_, "/tcpx-node_1-", getpid()))) << file.path();
    EXPECT_TRUE(absl::EndsWith(file.path(), ".prom"));
    file.Write("first\n");
    file.Write("second\n");
    EXPECT_EQ("second\n", FileText(file.path()));
    EXPECT_EQ(1u, Names().size());
  }
  EXPECT_EQ(0u, Names().size());
}

TEST_F(StatsFileTest, CollectorsMayReadItWhateverTheUmaskIs) {
  StatsFile file(dir_, process_, &warned_);
  const mode_t mask = umask(077);
  file.Write("x\n");
  umask(mask);
  struct stat about {};
  ASSERT_EQ(0, stat(file.path().c_str(), &about));
  EXPECT_EQ(0644u, about.st_mode & 0777);
}

TEST_F(StatsFileTest, ReadersNeverSeeAHalf) {
  StatsFile file(dir_, process_, &warned_);
  file.Write(std::string(100000, 'a'));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (char c = 'b'; !stop; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) file.Write(std::string(100000, c));
  });
  for (int i = 0; i < 200; ++i) {
    const std::string text = FileText(file.path());
    EXPECT_EQ(std::string(100000, text[0]), text);
  }
  stop = true;
  writer.join();
}

TEST_F(StatsFileTest, RemovesWhatDeadProcessesOfThisHostLeft) {
  KeptLog log;
  StatsFile file(dir_, process_, &warned_);
  file.Write("x\n");
  const int dead = DeadPid();
  const std::string here = ProcessMark().substr(absl::StrCat(getpid()).size());  // "", or "-NAMESPACE"
  Old(absl::StrCat("tcpx-node_1-", dead, here, ".prom"), 100);
  Old(absl::StrCat("tcpx-node_1-", dead, here, ".prom.tmp"), 100);
  const std::string young = Old(absl::StrCat("tcpx-node_1-", DeadPid(), here, ".prom"), 0);
  const std::string other_host = Old(absl::StrCat("tcpx-node_2-", dead, here, ".prom"), 100);
  file.RemoveStale();
  const std::string own = file.path().substr(dir_.size() + 1);
  EXPECT_EQ((std::set<std::string>{own, young, other_host}), Names());
  EXPECT_EQ(2u, log.Lines().size());
}

TEST_F(StatsFileTest, LeavesWhatHasAnotherNameAlone) {
  StatsFile file(dir_, process_, &warned_);
  const int dead = DeadPid();
  std::set<std::string> left;
  for (const char* end :
       {"x.prom", ".txt", "-.prom", "-x.prom", "-17-18.prom", "-17x.prom", " .prom", ".prom.tmp.prom"}) {
    left.insert(Old(absl::StrCat("tcpx-node_1-", dead, end), 10000));
  }
  left.insert(Old("tcpx-node_1-.prom", 10000));
  left.insert(Old("tcpx-node_1--17.prom", 10000));
  left.insert(Old("tcpx-node_1-x.prom", 10000));
  file.RemoveStale();
  EXPECT_EQ(left, Names());
}

// Its PIDs mean nothing here: those that are dead here may live there, and the reverse.
TEST_F(StatsFileTest, FilesOfAnotherPidNamespaceGoByTheirAge) {
  StatsFile file(dir_, process_, &warned_);
  const std::string young = Old(absl::StrCat("tcpx-node_1-", DeadPid(), "-17.prom"), 100);
  Old(absl::StrCat("tcpx-node_1-", getpid(), "-17.prom"), 1000);
  Old(absl::StrCat("tcpx-node_1-", DeadPid(), "-17.prom.tmp"), 1000);
  file.RemoveStale();
  EXPECT_EQ(std::set<std::string>{young}, Names());
}

// Each pod of Kubernetes has a host name of its own, and after a reboot a PID is another process's.
TEST_F(StatsFileTest, WhatNobodyWritesForLongIsRemoved) {
  StatsFile file(dir_, process_, &warned_);
  file.Write("x\n");
  const std::string here = ProcessMark().substr(absl::StrCat(getpid()).size());
  std::set<std::string> left = {file.path().substr(dir_.size() + 1), Old("tcpx-pod-9.prom", 500),
                                Old(absl::StrCat("tcpx-node_1-2", here, ".prom"), 10)};
  Old("tcpx-pod.7_x-9.prom", 1000);
  Old("tcpx-pod.7_x-9-4026532001.prom.tmp", 1000);
  Old(absl::StrCat("tcpx-node_1-1", here, ".prom"), 1000);
  for (const char* name :
       {"tcpx-node 2-9.prom", "tcpx-node-2-9-7.prom", "tcpx-9.prom", "tcp-node-9.prom", "node.prom"}) {
    left.insert(Old(name, 10000));
  }
  file.RemoveStale();
  EXPECT_EQ(left, Names());
}

TEST_F(StatsFileTest, FollowsNothingThatLiesThere) {
  StatsFile file(dir_, process_, &warned_);
  const std::string victim = dir_ + "/victim";
  std::ofstream(victim) << "mine";
  ASSERT_EQ(0, symlink(victim.c_str(), (file.path() + ".tmp").c_str()));
  file.Write("x\n");
  EXPECT_EQ("mine", FileText(victim));
  EXPECT_EQ("x\n", FileText(file.path()));
}

TEST_F(StatsFileTest, AFolderThatIsNotThereIsOneWarning) {
  KeptLog log;
  StatsFile file(dir_ + "/none", process_, &warned_);
  for (int i = 0; i < 3; ++i) file.Write("x\n");
  file.RemoveStale();
  ASSERT_EQ(1u, log.Warnings().size());
  EXPECT_TRUE(absl::StrContains(log.Warnings()[0], "TCPX_STATS_DIR"));
  EXPECT_TRUE(absl::StrContains(log.Warnings()[0], "No such file or directory")) << log.Warnings()[0];
  ASSERT_EQ(0, mkdir((dir_ + "/none").c_str(), 0755));
  file.Write("x\n");
  EXPECT_EQ("x\n", FileText(file.path()));
}

TEST_F(StatsFileTest, AFullDiskKeepsTheLastWholeFileAndIsOneWarning) {
  KeptLog log;
  const bool ran = OnSmallDisk(dir_, [this, &log] {
    StatsFile file(dir_, process_, &warned_);
    file.Write("whole\n");
    for (int i = 0; i < 3; ++i) file.Write(std::string(1 << 20, 'x'));
    EXPECT_EQ("whole\n", FileText(file.path()));
    EXPECT_EQ(1u, Names().size());
    ASSERT_EQ(1u, log.Warnings().size());
    EXPECT_TRUE(absl::StrContains(log.Warnings()[0], "No space left")) << log.Warnings()[0];
    FillDisk(dir_);
    file.Write("none\n");
    EXPECT_EQ("whole\n", FileText(file.path()));
    unlink((dir_ + "/filler").c_str());
    file.Write("again\n");
    EXPECT_EQ("again\n", FileText(file.path()));
    EXPECT_EQ(1u, log.Warnings().size());
  });
  if (!ran) GTEST_SKIP() << kNoSmallDisk;
}

}  // namespace
}  // namespace tcpx
