#include "net_socket/stats/hub.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "tests/support/deadline.h"
#include "tests/support/kept_log.h"
#include "tests/unit/net_socket/stats/sample_snapshot.h"

namespace tcpx {
namespace {

// A comm that counts.
class FakeComm final : public Watched {
 public:
  FakeComm(StatsHub* hub, const std::string& peer) : hub_(hub), link_(std::make_shared<CommLink>(this)) {
    entry_ = hub->Join(link_, [&](ConnectionNumbers* numbers) { *numbers = SampleConnection(peer, true, 2); });
  }
  ~FakeComm() {
    hub_->Leave(entry_, [this](ConnectionNumbers* numbers) { ReadNumbers(numbers); });
    link_->Cut();
  }

  void PeerDied(const absl::Status&) override {}
  void PeerEnded() override {}
  void PeerFailed(const std::string&) override {}
  void PeerParted(const std::string&) override {}
  void ContextFailed(const std::string&) override {}
  void CheckProgress(int64_t) override {}
  void ReadNumbers(ConnectionNumbers* numbers) override { numbers->messages = {++looks_, 0}; }

  uint64_t looks() const { return looks_; }

 private:
  StatsHub* const hub_;
  const std::shared_ptr<CommLink> link_;
  std::shared_ptr<StatsEntry> entry_;
  std::atomic<uint64_t> looks_{0};
};

// Abstract names are the whole machine's.
StatsSettings WithSocket(const char* name) {
  static const int64_t start_ns = MonotonicNanos();
  StatsSettings settings;
  settings.socket = absl::StrCat("@tcpx-hub-test-", name, "-", start_ns, "-%p");
  return settings;
}

const DirectionTotals& SentTo(const Snapshot& snapshot, const std::string& peer) {
  return snapshot.totals.map().at({"eth0", peer})[1];
}

TEST(StatsHubTest, WhoIsNotStartedDoesNotLook) {
  StatsSettings settings;
  settings.table = true;
  StatsHub hub(settings);
  { FakeComm comm(&hub, "a"); }
  EXPECT_EQ(0u, hub.Take(true).looks);
  EXPECT_EQ(1u, SentTo(hub.Take(false), "a").messages[0]);
}

TEST(StatsHubTest, LooksAtAllAndKeepsWhatClosedOnesCounted) {
  StatsHub hub(WithSocket("looks"));
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
  usleep(1000);
  EXPECT_EQ(looks, second.looks());
}

TEST(StatsHubTest, PeersBeyondTheBoundShareAName) {
  StatsSettings settings;
  settings.table = true;
  StatsHub hub(settings);
  for (size_t i = 0; i < Totals::kPeersMax + 50; ++i) FakeComm comm(&hub, absl::StrCat("peer", i));
  const Snapshot snapshot = hub.Take(false);
  EXPECT_EQ(Totals::kPeersMax + 1, snapshot.totals.map().size());
  EXPECT_EQ(50u, SentTo(snapshot, Totals::kOther).opened);
}

TEST(StatsHubTest, TwoHubsOfOneNameAreOneWarning) {
  KeptLog log;
  StatsHub one(WithSocket("twice"));
  StatsHub two(WithSocket("twice"));
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

TEST(StatsHubTest, ConnectionsComeAndGoWhileItLooks) {
  StatsHub hub(WithSocket("churn"));
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
