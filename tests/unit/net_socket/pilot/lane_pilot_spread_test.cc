// When a pilot tries to spread its lanes, and when it explores again.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "net_socket/pilot/lane_pilot.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

constexpr int kLanes = 8;
constexpr int kLanesMax = 32;
constexpr double kLinkBytes = 1e6;  // in a step

// A connection that fills a link. Its fourth lane is crowded, and so is each new one.
class Crowded {
 public:
  explicit Crowded(uint64_t seed) : pilot_({kLanes, kLanesMax, true, seed}) {}

  // Returns how many lanes it ordered.
  int Step() {
    now_ += tuning::kStepNs;
    double weights = 0;
    for (int i = 0; i < kLanesMax; ++i) weights += pilot_.carries(i) ? Weight(i) : 0;
    for (int i = 0; i < kLanesMax; ++i) {
      if (!pilot_.carries(i)) continue;
      acked_[static_cast<size_t>(i)] += static_cast<uint64_t>(rate_ * kLinkBytes * Weight(i) / weights);
    }
    for (int lane : std::exchange(opening_, {})) pilot_.Opened(lane);
    (void)pilot_.Step(now_, {acked_});
    for (const LaneOrder& order : pilot_.TakeOrders()) {
      if (order.kind == LaneOrder::Kind::kClose) pilot_.Closed(order.lane);
      if (order.kind == LaneOrder::Kind::kOpen) opening_.push_back(order.lane);
    }
    return static_cast<int>(opening_.size());
  }
  // Until it tries to replace a lane. Returns how long that took; kMinute: it did not.
  int64_t UntilATrial() {
    const int64_t from = now_;
    while (now_ - from < kMinute && Step() != 1) {
    }
    return now_ - from;
  }
  void Pause() { now_ += kSecond; }
  // The link brings `rate` times as much, for so long. Returns how often more lanes than one were tried at once.
  int Explores(double rate, int64_t for_ns) {
    rate_ = rate;
    int attempts = 0;
    for (const int64_t until = now_ + for_ns; now_ < until;) attempts += Step() > 1 ? 1 : 0;
    return attempts;
  }

  static constexpr int64_t kMinute = 60 * kSecond;

 private:
  static double Weight(int lane) { return lane == 3 || lane >= kLanes ? 0.5 : 1; }

  LanePilot pilot_;
  std::vector<uint64_t> acked_ = std::vector<uint64_t>(kLanesMax);
  std::vector<int> opening_;
  int64_t now_ = 5 * kSecond;
  double rate_ = 1;
};

TEST(LanePilotSpreadTest, ATrialThatIsBrokenOffIsRepeatedAfterAPause) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Crowded connection(seed);
    ASSERT_GT(Crowded::kMinute, connection.UntilATrial());
    connection.Pause();
    const int64_t again = connection.UntilATrial();
    EXPECT_LE((1 - tuning::kJitter) * tuning::kSpreadEveryNs, again);
  }
}

TEST(LanePilotSpreadTest, ExploringThatHasEndedStartsAgainAfterALongFallOnly) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Crowded connection(seed);
    EXPECT_EQ((1 + tuning::kPausesMax) * tuning::kVainMax, connection.Explores(1, 2 * Crowded::kMinute));
    // As while the collectives of two jobs meet.
    EXPECT_EQ(0, connection.Explores(0.7, kSecond));
    EXPECT_EQ(0, connection.Explores(1, Crowded::kMinute));
    EXPECT_EQ(2 * tuning::kVainMax, connection.Explores(0.7, Crowded::kMinute));
  }
}

}  // namespace
}  // namespace tcpx
