#include "net_socket/stats/hub.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/params.h"
#include "tests/support/deadline.h"
#include "tests/support/kept_log.h"
#include "tests/unit/net_socket/stats/sample_snapshot.h"

namespace tcpx {
namespace {

// A comm that counts.
class FakeComm final : public NumbersSource {
 public:
  FakeComm(StatsHub* hub, const std::string& peer) : hub_(hub) {
    entry_ = hub->Join(tie_.To(this), [&](ConnectionNumbers* numbers) { *numbers = SampleConnection(peer, true, 2); });
  }
  ~FakeComm() {
    hub_->Leave(entry_, [this](ConnectionNumbers* numbers) { ReadNumbers(numbers); });
    tie_.Cut();
  }

  void ReadNumbers(ConnectionNumbers* numbers) override {
    numbers->messages = {++looks_, 0};
    if (no_memory_) throw std::bad_alloc();
  }

  uint64_t looks() const { return looks_; }
  void TakeMemory(bool none) { no_memory_ = none; }

 private:
  StatsHub* const hub_;
  Tie tie_;
  std::shared_ptr<StatsEntry> entry_;
  std::atomic<uint64_t> looks_{0};
  std::atomic<bool> no_memory_{false};
};

// Abstract names are the whole machine's.
Options WithSocket(const char* name) {
  static const int64_t start_ns = MonotonicNanos();
  Options options;
  options.stats_socket = absl::StrCat("@tcpx-hub-test-", name, "-", start_ns, "-%p");
  return options;
}

const DirectionTotals& SentTo(const Snapshot& snapshot, const std::string& peer) {
  return snapshot.totals.map().at({"eth0", peer})[1];
}

TEST(StatsHubTest, WhoIsNotStartedDoesNotLook) {
  Options options;
  options.stats = true;
  StatsHub hub(options);
  { FakeComm comm(&hub, "a"); }
  EXPECT_EQ(0u, hub.Take(true).looks);
  EXPECT_EQ(1u, SentTo(hub.Take(false), "a").messages[0]);
}

TEST(StatsHubTest, LooksAtAllAndKeepsWhatClosedOnesCounted) {
  const Options options = WithSocket("looks");
  StatsHub hub(options);
  hub.Start();
  auto first = std::make_unique<FakeComm>(&hub, "a");
  FakeComm second(&hub, "a");
  const Deadline deadline;
  while (second.looks() < 2 && deadline.Yield()) {
  }
  EXPECT_EQ(2u, hub.Take(true).connections.size());
  first.reset();
  const Snapshot snapshot = hub.Take(true);
  EXPECT_EQ(1u, snapshot.connections.size());
  EXPECT_EQ(1u, SentTo(snapshot, "a").open);
  EXPECT_EQ(2u, SentTo(snapshot, "a").opened);
  EXPECT_GE(SentTo(snapshot, "a").messages[0], 3u);
  hub.Stop();
  const uint64_t looks = second.looks();
  // Nothing tells that no more looks come.
  usleep(1000);
  EXPECT_EQ(looks, second.looks());
}

TEST(StatsHubTest, PeersBeyondTheBoundShareAName) {
  Options options;
  options.stats = true;
  StatsHub hub(options);
  for (size_t i = 0; i < Totals::kPeersMax + 50; ++i) FakeComm comm(&hub, absl::StrCat("peer", i));
  const Snapshot snapshot = hub.Take(false);
  EXPECT_EQ(Totals::kPeersMax + 1, snapshot.totals.map().size());
  EXPECT_EQ(50u, SentTo(snapshot, Totals::kOther).opened);
}

TEST(StatsHubTest, TwoHubsOfOneNameAreOneWarning) {
  KeptLog log;
  const Options options = WithSocket("twice");
  StatsHub one(options);
  StatsHub two(options);
  one.Start();
  FakeComm comm(&one, "a");
  const Deadline deadline;
  while (comm.looks() == 0 && deadline.Yield()) {
  }
  two.Start();
  while (log.Warnings().empty() && deadline.Yield()) {
  }
  EXPECT_EQ(1u, log.Warnings().size());
  two.Stop();
  one.Stop();
}

// A job may close all its connections and make others many times.
TEST(StatsHubTest, WhatDoesNotWorkIsReportedOnceInAProcess) {
  KeptLog log;
  Options options;
  options.stats_dir = "/proc/none";
  options.stats_socket = "/proc/none/socket";
  StatsHub hub(options);
  for (int i = 0; i < 4; ++i) {
    hub.Start();
    FakeComm comm(&hub, "a");
    const Deadline deadline;
    while (comm.looks() == 0 && deadline.Yield()) {
    }
    hub.Stop();
  }
  EXPECT_EQ(2u, log.Warnings().size());
}

TEST(StatsHubTest, WithoutADescriptorThereIsNoThreadToWaitFor) {
  KeptLog log;
  const Options options = WithSocket("descriptors");
  StatsHub hub(options);
  rlimit before{};
  ASSERT_EQ(0, getrlimit(RLIMIT_NOFILE, &before));
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &none));
  hub.Start();
  hub.Stop();
  hub.Start();
  ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &before));
  FakeComm comm(&hub, "a");
  hub.Stop();
  EXPECT_EQ(0u, comm.looks());
  EXPECT_EQ(1u, log.Warnings().size());
}

TEST(StatsHubTest, WithoutMemoryALookIsLeftOut) {
  KeptLog log;
  const Options options = WithSocket("memory");
  StatsHub hub(options);
  FakeComm comm(&hub, "a");
  comm.TakeMemory(true);
  hub.Start();
  const Deadline deadline;
  while (comm.looks() < 2 && deadline.Yield()) {
  }
  comm.TakeMemory(false);
  while (hub.Take(true).looks == 0 && deadline.Yield()) {
  }
  EXPECT_GT(hub.Take(true).looks, 0u);
  hub.Stop();
  EXPECT_EQ(1u, log.Warnings().size());
}

TEST(StatsPaceTest, LooksAreRarerWhereTheyCostMuchButNeverStop) {
  StatsPace pace;
  EXPECT_TRUE(pace.LookDue(0));
  pace.Looked(0, kMillisecond);
  EXPECT_FALSE(pace.LookDue(kSecond - 1));
  EXPECT_TRUE(pace.LookDue(kSecond));
  pace.Looked(0, 10 * kMillisecond);
  EXPECT_FALSE(pace.LookDue(3 * kSecond - 1));
  EXPECT_TRUE(pace.LookDue(3 * kSecond));
  pace.Looked(0, 3600 * kSecond);
  EXPECT_TRUE(pace.LookDue(10 * kSecond));
}

TEST(StatsPaceTest, WritesDoNotWaitForALook) {
  StatsPace pace;
  EXPECT_TRUE(pace.WriteDue(0));
  pace.Wrote(0);
  EXPECT_TRUE(pace.WriteDue(kSecond));
  pace.Looked(kSecond, kSecond);
  pace.Wrote(kSecond);
  EXPECT_FALSE(pace.WriteDue(11 * kSecond - 1));
  EXPECT_TRUE(pace.WriteDue(11 * kSecond));
  pace.Looked(10 * kSecond, kSecond);
  EXPECT_EQ(11 * kSecond, pace.next_ns());
}

TEST(StatsHubTest, ConnectionsComeAndGoWhileItLooks) {
  const Options options = WithSocket("churn");
  StatsHub hub(options);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&hub, i] {
      for (int round = 0; round < 50; ++round) {
        hub.Start();
        { FakeComm comm(&hub, absl::StrCat("peer", i)); }
        (void)hub.Take(true);
        hub.Stop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Snapshot snapshot = hub.Take(true);
  EXPECT_TRUE(snapshot.connections.empty());
  EXPECT_EQ(50u, SentTo(snapshot, "peer0").opened);
}

}  // namespace
}  // namespace tcpx
