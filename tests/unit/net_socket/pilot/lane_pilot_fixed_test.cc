// Which lanes carry where none can be opened and closed, over simulated paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <vector>

#include "common/clock.h"
#include "net_socket/pilot/lane_pilot.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

constexpr double kPathRate = 200e6;  // bytes per second

// A connection with bulk waiting all the time; lane i goes by path[i], whose rate its lanes share.
class Network {
 public:
  Network(std::vector<int> path_of_lane, std::vector<double> path_rates, double noise = 0)
      : path_of_lane_(std::move(path_of_lane)),
        rates_(std::move(path_rates)),
        noise_(noise),
        pilot_({static_cast<int>(path_of_lane_.size()), static_cast<int>(path_of_lane_.size()), false, 4711}),
        acked_(path_of_lane_.size()) {}

  // Returns what arrived in that time.
  double Run(double seconds, int64_t step_ns = tuning::kStepNs) {
    double moved = 0;
    for (double t = 0; t < seconds; t += static_cast<double>(step_ns) / kSecond) {
      now_ += step_ns;
      moved += Move(static_cast<double>(step_ns) / kSecond);
      changes_ += pilot_.Step(now_, {acked_}) ? 1 : 0;
      EXPECT_TRUE(pilot_.TakeOrders().empty());
    }
    return moved;
  }
  void StandStill(int64_t ns) { now_ += ns; }
  void SetRate(int path, double rate) { rates_[static_cast<size_t>(path)] = rate; }
  void SetDemand(double rate) { demand_ = rate; }

  const LanePilot& pilot() const { return pilot_; }
  int changes() const { return changes_; }
  std::set<int> PathsInUse() const {
    std::set<int> paths;
    for (size_t i = 0; i < acked_.size(); ++i) {
      if (pilot_.carries(static_cast<int>(i))) paths.insert(path_of_lane_[i]);
    }
    return paths;
  }

 private:
  double Move(double seconds) {
    std::vector<int> lanes_on(rates_.size());
    for (size_t i = 0; i < acked_.size(); ++i)
      lanes_on[path_of_lane_[i]] += pilot_.carries(static_cast<int>(i)) ? 1 : 0;
    double sum = 0;
    for (size_t p = 0; p < rates_.size(); ++p) sum += lanes_on[p] > 0 ? rates_[p] : 0;
    const double part = std::min(1.0, demand_ / std::max(sum, 1.0)) * Noise();
    double moved = 0;
    for (size_t i = 0; i < acked_.size(); ++i) {
      if (!pilot_.carries(static_cast<int>(i))) continue;
      const size_t path = static_cast<size_t>(path_of_lane_[i]);
      const double bytes = rates_[path] / lanes_on[path] * part * seconds;
      acked_[i] += static_cast<uint64_t>(bytes);
      moved += bytes;
    }
    return moved;
  }
  double Noise() { return std::max(0.0, std::normal_distribution<double>(1.0, noise_)(random_)); }

  const std::vector<int> path_of_lane_;
  std::vector<double> rates_;
  const double noise_;
  double demand_ = 1e12;
  LanePilot pilot_;
  std::vector<uint64_t> acked_;
  int64_t now_ = 5 * kSecond;
  int changes_ = 0;
  std::mt19937 random_{4711};
};

TEST(LanePilotFixedTest, OneLaneWhereOneFillsThePath) {
  Network network({0, 0, 0, 0}, {kPathRate});
  EXPECT_EQ(4, network.pilot().carrying());
  EXPECT_NEAR(4 * kPathRate, network.Run(4), 0.001 * kPathRate);
  EXPECT_EQ(1, network.pilot().carrying());
}

TEST(LanePilotFixedTest, AllLanesWhereEachFlowIsLimited) {
  Network network({0, 1, 2, 3}, {kPathRate, kPathRate, kPathRate, kPathRate});
  const double sum = 4 * kPathRate;
  EXPECT_LE(0.95 * 5 * sum, network.Run(5));
  EXPECT_LE(0.995 * 120 * sum, network.Run(120));
  network.Run(0.4);  // A trial that has just begun ends.
  EXPECT_EQ(4, network.pilot().carrying());
}

TEST(LanePilotFixedTest, OneLaneForEachPath) {
  Network network({0, 1, 0, 1, 0, 1}, {kPathRate, kPathRate});
  network.Run(30);
  EXPECT_EQ(2, network.pilot().carrying());
  EXPECT_EQ((std::set<int>{0, 1}), network.PathsInUse());
}

TEST(LanePilotFixedTest, NoiseCostsNoPath) {
  Network network({0, 1, 2, 3}, {kPathRate, kPathRate, kPathRate, kPathRate}, 0.1);
  EXPECT_LE(0.98 * 300 * 4 * kPathRate, network.Run(300));
}

TEST(LanePilotFixedTest, ANewLimitPerFlowTakesAllLanesAgain) {
  Network network({0, 1, 2, 3}, {4 * kPathRate, 0, 0, 0});
  network.Run(5);
  ASSERT_EQ(1, network.pilot().carrying());
  for (int path = 0; path < 4; ++path) network.SetRate(path, kPathRate);
  network.Run(1);
  EXPECT_LE(0.9 * 5 * 4 * kPathRate, network.Run(5));
}

TEST(LanePilotFixedTest, MoreDemandThanOneLaneCarriesIsFoundOut) {
  Network network({0, 1, 2, 3}, {kPathRate, kPathRate, kPathRate, kPathRate});
  network.SetDemand(kPathRate / 2);
  network.Run(10);
  EXPECT_EQ(1, network.pilot().carrying());
  network.SetDemand(1e12);
  network.Run(tuning::kEveryMaxNs / kSecond + 1);
  EXPECT_EQ(4, network.pilot().carrying());
}

TEST(LanePilotFixedTest, BurstsAreNotJudged) {
  Network network({0, 0, 0, 0}, {kPathRate});
  for (int i = 0; i < 100; ++i) {
    network.Run(0.25);
    network.StandStill(200 * kMillisecond);
  }
  EXPECT_EQ(0, network.changes());
  EXPECT_EQ(4, network.pilot().carrying());
}

TEST(LanePilotFixedTest, ATrialThatThePauseBreaksOffIsUndone) {
  Network network({0, 0, 0, 0}, {kPathRate});
  while (network.pilot().carrying() == 4) network.Run(0.02);
  network.StandStill(kSecond);
  network.Run(0.02);
  EXPECT_EQ(4, network.pilot().carrying());
}

TEST(LanePilotFixedTest, TrialsThatDoNotHelpBecomeRare) {
  Network network({0, 1, 2, 3}, {kPathRate, kPathRate, kPathRate, kPathRate});
  network.Run(60);
  const int early = network.changes();
  network.Run(600);
  EXPECT_GE(24, network.changes() - early);  // two for each minute, and a few
  EXPECT_LT(0, network.changes() - early);
}

TEST(LanePilotFixedTest, NothingMovesNothingIsTried) {
  Network network({0, 0}, {0});
  network.Run(10);
  EXPECT_EQ(0, network.changes());
}

}  // namespace
}  // namespace tcpx
