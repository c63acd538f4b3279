// Shares of losses by stretches, and who is short of CPU.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "common/clock.h"
#include "net_socket/health/cpu_shortage.h"
#include "net_socket/health/slow_lanes.h"

namespace tcpx {
namespace {

TEST(LaneLossesTest, AShareIsOfTheStretch) {
  LaneLosses losses;
  EXPECT_TRUE(losses.Due(0, 10));
  EXPECT_FALSE(losses.Look({{100, 50}, {0, 0}}, 1, 10));
  EXPECT_FALSE(losses.Due(5, 10));
  EXPECT_FALSE(losses.Look({{200, 50}, {0, 0}}, 5, 10));
  EXPECT_TRUE(losses.Look({{1100, 70}, {30, 1}}, 11, 10));
  EXPECT_EQ(1000u, losses.share(0).sent);
  EXPECT_EQ(20u, losses.share(0).retransmitted);
  EXPECT_EQ(30u, losses.share(1).sent);
  EXPECT_EQ(0u, losses.share(2).sent) << "a lane that there is not";
  // Another socket begins at 0.
  EXPECT_TRUE(losses.Look({{40, 2}, {30, 1}}, 30, 10));
  EXPECT_EQ(40u, losses.share(0).sent);
  EXPECT_EQ(2u, losses.share(0).retransmitted);
}

TEST(LaneLossesTest, ALaneIsNewsOnceUntilItHasStopped) {
  LaneLosses losses;
  losses.Look({{0, 0}}, 1, 10);
  EXPECT_TRUE(losses.News(0, true));
  EXPECT_FALSE(losses.News(0, true));
  EXPECT_FALSE(losses.News(0, false));
  EXPECT_TRUE(losses.News(0, true));
}

// Threads as the kernel shows them.
class CpuShortageTest : public ::testing::Test {
 protected:
  void Set(int thread, int64_t ran_ns, int64_t waited_ns, const char* name = "tcpx-io-0") {
    const std::string folder = tasks_ + std::to_string(thread);
    mkdir(folder.c_str(), 0700);
    std::ofstream(folder + "/comm") << name << "\n";
    std::ofstream(folder + "/schedstat") << ran_ns << " " << waited_ns << " 1\n";
  }
  int Percent() { return shortage_.Percent(now_ns_ += kSecond, kSecond); }

  const std::string tasks_ =
      ::testing::TempDir() + "/tcpx_tasks_" + ::testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
  const int made_ = mkdir(tasks_.c_str(), 0700);
  CpuShortage shortage_{tasks_};
  int64_t now_ns_ = kSecond;
};

TEST_F(CpuShortageTest, AThreadThatWantsACpuAndHasNoneIsShort) {
  Set(1, 0, 0);
  Set(2, 0, 0);
  EXPECT_EQ(0, Percent()) << "the first look has nothing to compare with";
  Set(1, kSecond, 0);                 // polls, and runs
  Set(2, kSecond / 10, kSecond / 5);  // sleeps most of the time
  EXPECT_EQ(0, Percent());
  Set(1, kSecond + kSecond / 50, kSecond * 97 / 100);
  EXPECT_EQ(97, Percent());
  EXPECT_TRUE(shortage_.FirstToLog());
  EXPECT_FALSE(shortage_.FirstToLog());
  Set(1, 2 * kSecond, kSecond * 97 / 100);
  EXPECT_EQ(0, Percent());
  EXPECT_TRUE(shortage_.FirstToLog()) << "it was over in between";
}

// A loader of the application that polls is none of ours; the thread of NCCL's that calls us is.
TEST_F(CpuShortageTest, ThreadsOfTheApplicationCountOnlyIfTheyCall) {
  Set(1, 0, 0, "python3");
  Set(2, 0, 0, "NCCL Progress 0");
  EXPECT_EQ(0, Percent());
  Set(1, 0, kSecond, "python3");
  EXPECT_EQ(0, Percent());
  shortage_.NoteCaller(2);
  shortage_.NoteCaller(77);
  EXPECT_EQ(0, Percent());
  Set(2, 0, kSecond, "NCCL Progress 0");
  EXPECT_EQ(100, Percent());
}

// The kernel counts how long a thread has waited once that is over.
TEST_F(CpuShortageTest, AThreadThatStillWaitsIsShort) {
  const auto set_state = [&](int thread, const char* state) {
    std::ofstream(tasks_ + std::to_string(thread) + "/stat") << thread << " (a) S (b) " << state << " 1 1 0\n";
  };
  Set(1, 5, 7);
  Set(2, 5, 7);
  set_state(1, "R");
  set_state(2, "S");
  EXPECT_EQ(0, Percent());
  EXPECT_EQ(100, Percent());
  Set(1, kSecond / 20, 7);  // It ran at the look before.
  EXPECT_EQ(95, Percent());
  Set(1, kSecond, 7);  // It runs all the time.
  EXPECT_EQ(0, Percent());
  set_state(1, "S");
  EXPECT_EQ(0, Percent());
  set_state(1, "R");
  EXPECT_EQ(0, Percent()) << "it has just been woken";
  EXPECT_EQ(100, Percent());
}

TEST_F(CpuShortageTest, LooksNoMoreOftenThanAsked) {
  Set(1, 0, 0);
  Percent();
  Set(1, 0, kSecond);
  EXPECT_EQ(0, shortage_.Percent(now_ns_ + kSecond / 2, kSecond));
  EXPECT_EQ(100, Percent());
}

// Nobody looks while nothing is under way.
TEST_F(CpuShortageTest, WhatWasLongAgoIsOfAnotherTime) {
  Set(1, 0, 0);
  Percent();
  Set(1, 0, kSecond);
  now_ns_ += 100 * kSecond;
  EXPECT_EQ(0, Percent());
  Set(1, 0, 2 * kSecond);
  EXPECT_EQ(100, Percent());
}

// The thread that looks is one of those.
TEST_F(CpuShortageTest, ALookThatComesLateForWantOfCpuCounts) {
  Set(1, 0, 0);
  Percent();
  Set(1, 0, 20 * kSecond);
  now_ns_ += 19 * kSecond;
  EXPECT_EQ(100, Percent());
}

TEST_F(CpuShortageTest, AKernelThatTellsNothingHasNobodyShort) {
  EXPECT_EQ(0, Percent());
  EXPECT_EQ(0, Percent());
  CpuShortage nowhere("/nowhere/");
  EXPECT_EQ(0, nowhere.Percent(kSecond, 1));
}

}  // namespace
}  // namespace tcpx
