// How many lanes are opened, and which stay, over simulated networks that nobody knows beforehand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <random>
#include <vector>

#include "common/clock.h"
#include "net_socket/pilot/lane_pilot.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

constexpr double kMbit = 1e6 / 8;
constexpr int kLanesMax = 32;
// The round trip of an empty path, and what each flow adds to it by what it has in the queue.
constexpr int64_t kEmptyUs = 100;
constexpr int64_t kQueuedUs = 5000;

// Paths that flows are hashed to, each shared by its flows, and a limit for each flow.
struct Paths {
  std::vector<double> rates;
  double per_flow = 1e12;
  double link = 1e12;
};

class Connection {
 public:
  // `queues`: what a new flow finds, by path. [us]
  Connection(int lanes, const std::vector<int64_t>* queues, uint64_t seed)
      : queues_(queues),
        random_(seed),
        pilot_({lanes, kLanesMax, true, seed}),
        acked_(kLanesMax),
        round_trips_(kLanesMax),
        path_(kLanesMax) {
    for (int i = 0; i < lanes; ++i) Dial(i);
  }

  bool carries(int lane) const { return pilot_.carries(lane); }
  int path(int lane) const { return path_[static_cast<size_t>(lane)]; }
  void Acknowledge(int lane, double bytes, int64_t round_trip_us) {
    acked_[static_cast<size_t>(lane)] += static_cast<uint64_t>(bytes);
    round_trips_[static_cast<size_t>(lane)].now_us = round_trip_us;
  }

  void Step(int64_t now_ns, bool limited) {
    for (int lane : opening_) pilot_.Opened(lane);
    opening_.clear();
    (void)pilot_.Step(now_ns, {acked_, limited, 1 << 20, nullptr, &round_trips_});
    for (const LaneOrder& order : pilot_.TakeOrders()) {
      if (order.kind == LaneOrder::Kind::kClose) {
        pilot_.Closed(order.lane);
        continue;
      }
      Dial(order.lane);
      ++dials_;
      if (order.kind == LaneOrder::Kind::kOpen) opening_.push_back(order.lane);
    }
  }

  int dials() const { return dials_; }
  const LanePilot& pilot() const { return pilot_; }

 private:
  void Dial(int lane) {
    const size_t path = random_() % queues_->size();
    path_[static_cast<size_t>(lane)] = static_cast<int>(path);
    round_trips_[static_cast<size_t>(lane)].least_us = kEmptyUs + (*queues_)[path];
  }

  const std::vector<int64_t>* const queues_;
  std::mt19937_64 random_;
  LanePilot pilot_;
  std::vector<uint64_t> acked_;
  std::vector<LanePolicy::RoundTrips> round_trips_;
  std::vector<int> path_;
  std::vector<int> opening_;
  int dials_ = 0;
};

class Network {
 public:
  Network(Paths paths, int connections, int lanes, uint64_t seed, double noise = 0.01)
      : paths_(std::move(paths)), queues_(paths_.rates.size()), noise_(noise), random_(seed) {
    for (int i = 0; i < connections; ++i) {
      connections_.push_back(std::make_unique<Connection>(lanes, &queues_, seed + static_cast<uint64_t>(i)));
    }
  }

  // The part of what there is that all connections got together.
  double Run(double seconds) {
    double got = 0;
    const double step = static_cast<double>(tuning::kStepNs) / kSecond;
    for (double t = 0; t < seconds; t += step) {
      now_ += tuning::kStepNs;
      got += Move(step);
      for (auto& connection : connections_) connection->Step(now_, limited_);
    }
    double sum = 0;
    for (double rate : paths_.rates) sum += rate;
    return got / seconds / std::min(sum, paths_.link);
  }

  void SetRate(int path, double rate) { paths_.rates[static_cast<size_t>(path)] = rate; }
  void SetLimited(bool limited) { limited_ = limited; }
  // All there is differs by this part, from 300 ms to 300 ms.
  void SetSlowNoise(double part) { slow_noise_ = part; }
  Connection& connection(int i) { return *connections_[static_cast<size_t>(i)]; }
  double got(int connection) const { return got_[static_cast<size_t>(connection)]; }
  void Forget() { got_.assign(connections_.size(), 0); }

 private:
  double Move(double seconds) {
    got_.resize(connections_.size());
    std::vector<int> flows(paths_.rates.size());
    int all = 0;
    Each([&](size_t, int, size_t path) { ++flows[path], ++all; });
    if (now_ >= redrawn_ns_ + 300 * kMillisecond) {
      redrawn_ns_ = now_;
      slowly_ = std::max(0.1, std::normal_distribution<double>(1.0, slow_noise_)(random_));
    }
    const double noise = slowly_ * std::max(0.0, std::normal_distribution<double>(1.0, noise_)(random_));
    double moved = 0;
    const auto of = [&](size_t path) {
      return std::min({paths_.rates[path] / flows[path], paths_.per_flow, paths_.link / all}) * seconds * noise;
    };
    // Where each flow is limited, each waits in a queue of its own.
    const auto alone = [&](size_t path) { return flows[path] * paths_.per_flow <= paths_.rates[path]; };
    for (size_t path = 0; path < flows.size(); ++path) queues_[path] = alone(path) ? 0 : flows[path] * kQueuedUs;
    Each([&](size_t connection, int lane, size_t path) {
      const int64_t queue_us = alone(path) ? kQueuedUs : flows[path] * kQueuedUs;
      connections_[connection]->Acknowledge(lane, of(path), kEmptyUs + queue_us);
      got_[connection] += of(path);
      moved += of(path);
    });
    return moved;
  }

  template <typename Function>
  void Each(Function function) {
    for (size_t c = 0; c < connections_.size(); ++c) {
      for (int lane = 0; lane < kLanesMax; ++lane) {
        if (connections_[c]->carries(lane)) function(c, lane, static_cast<size_t>(connections_[c]->path(lane)));
      }
    }
  }

  Paths paths_;
  std::vector<int64_t> queues_;
  const double noise_;
  double slow_noise_ = 0, slowly_ = 1;
  int64_t redrawn_ns_ = 0;
  bool limited_ = true;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<double> got_;
  int64_t now_ = 5 * kSecond;
};

// The mean of several seeds, and how many lanes there are in the end.
struct Result {
  double mean = 0;
  double worst = 1;
  double lanes = 0;
  double dials = 0;
};

template <typename Function>
Result Over(const Paths& paths, int connections, Function run) {
  constexpr int kRuns = 40;
  Result result;
  for (uint64_t seed = 1; seed <= kRuns; ++seed) {
    Network network(paths, connections, 4, seed);
    const double share = run(&network);
    result.mean += share / kRuns;
    result.worst = std::min(result.worst, share);
    result.lanes += static_cast<double>(network.connection(0).pilot().carrying()) / kRuns;
    result.dials += static_cast<double>(network.connection(0).dials()) / kRuns;
  }
  std::printf("mean %.3f worst %.3f, %.1f lanes in the end, %.1f dials\n", result.mean, result.worst, result.lanes,
              result.dials);
  return result;
}

TEST(LanePilotPathsTest, EightPathsAreFound) {
  const Paths paths{std::vector<double>(8, 200 * kMbit)};
  const Result early = Over(paths, 1, [](Network* network) { return network->Run(20); });
  EXPECT_LE(0.93, early.mean);
  const Result late = Over(paths, 1, [](Network* network) {
    network->Run(5);
    return network->Run(15);
  });
  EXPECT_LE(0.95, late.mean);
  EXPECT_GE(14, late.lanes);
}

TEST(LanePilotPathsTest, AsManyFlowsAsALimitPerFlowWants) {
  Paths paths{std::vector<double>(1000, 1600 * kMbit)};
  paths.per_flow = 100 * kMbit;
  paths.link = 1600 * kMbit;
  const Result result = Over(paths, 1, [](Network* network) {
    network->Run(5);
    return network->Run(15);
  });
  EXPECT_LE(0.95, result.mean);
  EXPECT_GE(22, result.lanes);
}

TEST(LanePilotPathsTest, OnOnePathFewLanesStay) {
  const Result result = Over({{2000 * kMbit}}, 1, [](Network* network) { return network->Run(60); });
  EXPECT_LE(0.99, result.mean);
  EXPECT_GE(4.1, result.lanes) << "four stay without a trial; one may be on";
  EXPECT_GE(12.1, result.dials) << "three attempts, and a long pause";
}

// Each could take from the others, who then would take it back. A new lane finds the queue that all are in, and goes.
TEST(LanePilotPathsTest, ConnectionsOnOnePathDoNotOutbidEachOther) {
  for (const int connections : {2, 4, 8}) {
    const Result result = Over({{200 * kMbit}}, connections, [&](Network* network) {
      network->SetSlowNoise(0.1);
      network->Run(20);
      double most = 0;
      for (int second = 20; second < 150; ++second) {
        (void)network->Run(1);
        for (int i = 0; i < connections; ++i) {
          most += network->connection(i).pilot().carrying() > 4 ? 1 : 0;
        }
      }
      for (int i = 0; i < connections; ++i) EXPECT_GE(20, network->connection(i).dials()) << i << " of " << connections;
      EXPECT_GE(0.02, most / 130 / connections) << "of the looks find more than four lanes";
      return network->Run(1);
    });
    EXPECT_GE(4.2, result.lanes);
  }
}

// Noise that lasts longer than a look, and so makes a try look good: it neither heaps up lanes nor keeps dialling.
TEST(LanePilotPathsTest, NoiseOpensNoLanesOnOnePath) {
  for (const double noise : {0.05, 0.10, 0.20}) {
    double latest = 0;
    const Result result = Over({{2000 * kMbit}}, 1, [&](Network* network) {
      network->SetSlowNoise(noise);
      network->Run(120);
      const int before = network->connection(0).dials();
      const double share = network->Run(180);
      latest += (network->connection(0).dials() - before) / 40.0;
      return share;
    });
    EXPECT_GE(noise < 0.2 ? 4.2 : 5.2, result.lanes) << noise;
    EXPECT_GE(tuning::kDialsAtOnce + 5 * tuning::kDialsEachMinute, result.dials) << noise;
    EXPECT_GE(6 * tuning::kDialsEachMinute, latest) << noise << ": three minutes of dials";
  }
}

TEST(LanePilotPathsTest, EightPathsAreFoundInNoise) {
  const Paths paths{std::vector<double>(8, 200 * kMbit)};
  const Result result = Over(paths, 1, [](Network* network) {
    network->SetSlowNoise(0.05);
    network->Run(10);
    return network->Run(50);
  });
  EXPECT_LE(0.85, result.mean);
  EXPECT_GE(14, result.lanes);
}

TEST(LanePilotPathsTest, APathThatFallsAndComesBack) {
  const std::vector<double> rates{400 * kMbit, 400 * kMbit, 400 * kMbit, 40 * kMbit};
  const Result fallen = Over({rates}, 1, [](Network* network) {
    network->Run(10);
    network->SetRate(0, 40 * kMbit);
    network->Run(5);
    return network->Run(5);
  });
  EXPECT_LE(0.98, fallen.mean) << "a few lanes stay without a trial, which would cost a third of the traffic";
  const Result back = Over({rates}, 1, [](Network* network) {
    network->Run(10);
    network->SetRate(0, 40 * kMbit);
    network->Run(10);
    network->SetRate(0, 400 * kMbit);
    network->Run(5);
    return network->Run(10);
  });
  EXPECT_LE(0.98, back.mean);
}

TEST(LanePilotPathsTest, NothingIsOpenedWhereTheNetworkIsNotTheLimit) {
  Network network({std::vector<double>(8, 200 * kMbit)}, 1, 4, 7);
  network.SetLimited(false);
  network.Run(60);
  EXPECT_EQ(0, network.connection(0).dials());
}

TEST(LanePilotPathsTest, TwoConnectionsShareTheirPaths) {
  const Paths paths{std::vector<double>(8, 200 * kMbit)};
  double worst = 1, mean = 0;
  const Result result = Over(paths, 2, [&](Network* network) {
    network->Run(5);
    network->Forget();
    const double share = network->Run(25);
    const double part = network->got(0) / (network->got(0) + network->got(1));
    worst = std::min({worst, 2 * part, 2 * (1 - part)});
    mean += 2 * std::min(part, 1 - part) / 40;
    return share;
  });
  EXPECT_LE(0.90, result.mean);
  EXPECT_LE(0.9, mean);
  std::printf("part of a half that the slower one has: mean %.2f worst %.2f\n", mean, worst);
}

}  // namespace
}  // namespace tcpx
