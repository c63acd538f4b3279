// A simulated connection whose pilot is to do nothing any more.
#include "bench/fabric/connection.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/clock.h"

namespace tcpx {
namespace fabric {
namespace {

constexpr double kTick = 0.005;

class Alone {
 public:
  explicit Alone(uint64_t seed) : connection_({}, Policy(), seed, -1, &process_, &topology_) {}

  void Run(double seconds, bool freeze) {
    for (double at = 0; at < seconds; at += kTick) {
      Solve();
      connection_.Move(kTick, 1);
      now_ns_ += static_cast<int64_t>(kTick * kSecond);
      (void)connection_.Look(now_ns_, freeze);
    }
  }
  int Carrying() {
    Solve();
    return static_cast<int>(flows_.size());
  }
  const Connection& connection() const { return connection_; }

 private:
  static TopologySpec EightPaths() {
    TopologySpec spec;
    spec.blind = true;
    spec.paths.assign(8, 200 * kMbit);
    return spec;
  }
  void Solve() {
    flows_.clear();
    connection_.AddFlows(1, &flows_);
    links_.Solve(&flows_);
    connection_.TakeShares(flows_);
    connection_.Settle(connection_.capacity());
  }

  MaxMin links_;
  Topology topology_{EightPaths(), &links_};
  Process process_;
  Connection connection_;
  std::vector<Flow> flows_;
  int64_t now_ns_ = 5 * kSecond;
};

// In a trial a lane that is open does not carry.
TEST(ConnectionTest, APilotFreezesBetweenItsTrials) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    Alone alone(seed);
    alone.Run(4 + 0.1 * static_cast<double>(seed), false);
    alone.Run(10, true);
    EXPECT_EQ(alone.connection().sockets(), alone.Carrying());
    const int64_t dials = alone.connection().dials();
    alone.Run(10, true);
    EXPECT_EQ(dials, alone.connection().dials());
  }
}

}  // namespace
}  // namespace fabric
}  // namespace tcpx
