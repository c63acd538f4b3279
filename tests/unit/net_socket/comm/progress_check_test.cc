// Housekeeping's looks at requests and paces; the look at lanes is lane_liveness_test's.
#include "net_socket/comm/progress_check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "common/clock.h"
#include "common/log.h"
#include "net_socket/health/cpu_shortage.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/comm/fake_end.h"

namespace tcpx {
namespace {

constexpr size_t kBulkLanes = 3;

class ProgressCheckTest : public ::testing::Test {
 protected:
  ProgressCheckTest() {
    SetLogSink(LogLine);  // A sink gets INFO too.
    Logged().clear();
    options_.stall_warn_ns = 10 * kSecond;
    options_.peer_timeout_ns = 30 * kSecond;
    end_.flight.messages = 1;
    end_.flight.bytes_total = 100;
  }

  void LookUntil(int seconds) {
    for (; second_ < seconds; ++second_) check_.LookInLoop((second_ + 1) * kSecond);
  }

  Options options_;
  Runtime runtime_{options_};
  FakeEnd end_;
  const ConnectionSetup setup_ = FakeSetup(&runtime_, nullptr, false, 1 + kBulkLanes);
  ConnectionFailure failure_{&setup_, &end_, NoTie()};
  ProgressCheck check_{&setup_, &end_, &failure_};
  int second_ = 0;
};

TEST_F(ProgressCheckTest, ABusyPeerIsReportedAndDoesNotFail) {
  LookUntil(60);
  EXPECT_FALSE(failure_.failed()) << failure_.status();
  ASSERT_EQ(1u, Logged().size());
  EXPECT_TRUE(absl::StrContains(Logged()[0], "no progress for 10.0 s")) << Logged()[0];
}

TEST_F(ProgressCheckTest, AStallAfterAPeerThatEndedFails) {
  check_.PeerEnded();
  LookUntil(25);
  EXPECT_FALSE(failure_.failed()) << failure_.status();
  LookUntil(60);
  EXPECT_EQ(kPeerVanished, failure_.status().message());
}

TEST_F(ProgressCheckTest, AStallAfterALaneThatEndedFails) {
  end_.lane_ended = true;
  LookUntil(60);
  EXPECT_EQ("a lane has ended without its connection", failure_.status().message());
}

TEST_F(ProgressCheckTest, ALaneThatIsSlowForLongIsReportedOnceAndCounted) {
  end_.flight.messages = 0;
  end_.paces.resize(kBulkLanes);
  for (int i = 0; i < 60; ++i) {
    ++end_.done;
    const int64_t pace[kBulkLanes] = {1'000'000, 1'000'000, 100'000};
    for (size_t lane = 0; lane < kBulkLanes; ++lane) {
      end_.paces[lane].bytes_per_second = pace[lane];
      end_.paces[lane].bytes_sent += static_cast<uint64_t>(pace[lane]);
    }
    LookUntil(i + 1);
  }
  EXPECT_EQ(1u, check_.slow_lanes());
  EXPECT_EQ(Cause::kPathSlow, check_.slow().cause);
  ASSERT_EQ(1u, Logged().size());
  EXPECT_TRUE(absl::StrContains(Logged()[0], "a slow lane: 0.1 MB/s")) << Logged()[0];
}

// All lanes have what nobody reads here: our fault, unless the peer has sent what comes later and left out what is due.
TEST_F(ProgressCheckTest, APeerThatParksEveryLaneBlamesNobodyHere) {
  for (const bool parked : {false, true}) {
    Logged().clear();
    end_.parking = parked;
    end_.holding = true;
    TcpPair pair = MakeTcpPair(0);
    ConnectionSetup setup = FakeSetup(&runtime_);
    setup.lanes[0].fd = std::move(pair.a);
    setup.direction = Direction::kReceive;
    ConnectionFailure failure(&setup, &end_, NoTie());
    ProgressCheck check(&setup, &end_, &failure);
    for (int second = 1; second < 30; ++second) check.LookInLoop(second * kSecond);
    ASSERT_FALSE(Logged().empty());
    EXPECT_EQ(!parked, absl::StrContains(Logged()[0], "bytes could be moved here")) << Logged()[0];
  }
}

// With a thread of ours that waits for a CPU.
class ShortOfCpuTest : public ProgressCheckTest {
 protected:
  ShortOfCpuTest() {
    mkdir(tasks_.c_str(), 0700);
    mkdir((tasks_ + "1").c_str(), 0700);
    std::ofstream(tasks_ + "1/comm") << "tcpx-io-0\n";
    *runtime_.cpu_shortage = CpuShortage(tasks_);
  }

  // In each second it waits for a CPU for so long, and runs for the rest.
  void LookFor(int seconds, int percent) {
    for (int i = 0; i < seconds; ++i) {
      const int64_t all_ns = (second_ + 1) * kSecond;
      std::ofstream(tasks_ + "1/schedstat")
          << all_ns / 100 * (100 - percent) << " " << all_ns / 100 * percent << " 1\n";
      end_.flight.bytes_done += moved_;
      LookUntil(second_ + 1);
    }
  }

  const std::string tasks_ = ::testing::TempDir() + "/tcpx_tasks/";
  int64_t moved_ = 0;  // bytes, each second
};

// Whose threads get CPU is only asked while something is under way.
TEST_F(ShortOfCpuTest, AnIdleConnectionAsksTheKernelForNothing) {
  end_.flight.messages = 0;
  LookFor(20, 100);
  EXPECT_EQ(0, runtime_.cpu_shortage->percent());
  end_.flight.messages = 1;
  LookFor(9, 100);
  EXPECT_EQ(100, runtime_.cpu_shortage->percent());
}

TEST_F(ShortOfCpuTest, IsWhyARequestIsSlow) {
  moved_ = 1;
  LookFor(30, 60);
  ASSERT_EQ(1u, Logged().size());
  EXPECT_TRUE(absl::StrContains(Logged()[0], "verdict: no-cpu: ")) << Logged()[0];
  EXPECT_EQ(Cause::kNoCpu, check_.slow().cause);
}

TEST_F(ShortOfCpuTest, IsNotWhyARequestStalls) {
  LookFor(40, 60);
  ASSERT_EQ(1u, Logged().size());
  EXPECT_TRUE(absl::StrContains(Logged()[0], "no progress for 10.0 s")) << Logged()[0];
  EXPECT_FALSE(absl::StrContains(Logged()[0], "no-cpu")) << Logged()[0];
}

}  // namespace
}  // namespace tcpx
