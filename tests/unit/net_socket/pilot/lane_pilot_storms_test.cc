// What may happen to a connection's lanes, at random, by a seed: stalls, other speeds, deaths, dials that come late or
// to nothing, pauses. Whatever the pilot decides, one lane carries, nothing stays half done, and dials are bounded.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <random>
#include <vector>

#include "common/clock.h"
#include "net_socket/nic/lane_budget.h"
#include "net_socket/pilot/lane_pilot.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

constexpr int kLanesMax = 32;
constexpr int64_t kDialBoundNs = 3 * kSecond;

// What goes wrong, how often a second.
struct Weather {
  double stalls = 0;   // of each lane: 200 to 400 ms without an acknowledgement
  double speeds = 0;   // a path gets another rate
  double deaths = 0;   // of each lane: its socket, which healing brings back
  double refused = 0;  // part of the dials that come to nothing, or late
  double pauses = 0;   // of the application: 0.1 to 3 s
  double shut = 0;     // part of the time in which the network is not the limit
  double noise = 0;    // of all rates, from 300 ms to 300 ms
};

// One connection, its pilot, and what carries out the pilot's orders.
class Storm {
 public:
  Storm(int lanes, const Weather& weather, uint64_t seed)
      : weather_(weather),
        random_(seed),
        pilot_({lanes, kLanesMax, true, seed}),
        lanes_(kLanesMax),
        acked_(kLanesMax),
        rates_(8, 25e6) {
    for (int i = 0; i < lanes; ++i) Open(i);
  }

  // Stops at the first step after which something is wrong.
  void Run(double seconds) {
    const int64_t until_ns = now_ns_ + static_cast<int64_t>(seconds * kSecond);
    while (now_ns_ < until_ns && !::testing::Test::HasFailure()) Step();
  }
  int dials() const { return dials_; }
  const LanePilot& pilot() const { return pilot_; }

 private:
  enum class State { kNone, kDialled, kOpen, kClosing };
  struct Lane {
    State state = State::kNone;
    int path = 0;
    int64_t stalls_until_ns = 0;
    int64_t due_ns = 0;  // of the dial, or the close
    bool comes = false;  // of the dial
  };

  double Chance() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  bool Happens(double per_second) { return Chance() < per_second * static_cast<double>(tuning::kStepNs) / kSecond; }
  int64_t Between(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(random_); }
  Lane& lane(int i) { return lanes_[static_cast<size_t>(i)]; }

  void Open(int i) {
    lane(i).state = State::kOpen;
    lane(i).path = static_cast<int>(random_() % rates_.size());
    open_lanes_.Open(static_cast<size_t>(i));
    opened_[static_cast<size_t>(i)] = true;
  }

  void Step() {
    now_ns_ += tuning::kStepNs;
    if (Happens(weather_.pauses)) now_ns_ += Between(100 * kMillisecond, 3 * kSecond);
    Break();
    Move();
    Serve();
    (void)pilot_.Step(now_ns_, {acked_, Chance() >= weather_.shut});
    for (const LaneOrder& order : pilot_.TakeOrders()) CarryOut(order);
    Check();
  }

  void Break() {
    if (Happens(weather_.speeds)) rates_[random_() % rates_.size()] = Chance() < 0.2 ? 0 : 25e6 * Chance();
    for (Lane& at : lanes_) {
      if (at.state != State::kOpen) continue;
      if (Happens(weather_.stalls)) at.stalls_until_ns = now_ns_ + Between(200, 400) * kMillisecond;
      if (Happens(weather_.deaths)) at.stalls_until_ns = now_ns_ + Between(1, 2000) * kMillisecond;
    }
  }

  void Move() {
    if (now_ns_ >= redrawn_ns_ + 300 * kMillisecond) {
      redrawn_ns_ = now_ns_;
      noise_ = std::max(0.1, std::normal_distribution<double>(1, weather_.noise)(random_));
    }
    std::vector<int> flows(rates_.size());
    Each([&](int i) { ++flows[static_cast<size_t>(lane(i).path)]; });
    Each([&](int i) {
      const size_t path = static_cast<size_t>(lane(i).path);
      acked_[static_cast<size_t>(i)] += static_cast<uint64_t>(noise_ * rates_[path] / flows[path] / 50);
    });
  }

  template <typename Function>
  void Each(Function function) {
    for (int i = 0; i < kLanesMax; ++i) {
      if (lane(i).state == State::kOpen && pilot_.carries(i) && now_ns_ >= lane(i).stalls_until_ns) function(i);
    }
  }

  // Dials that end, and closes.
  void Serve() {
    for (int i = 0; i < kLanesMax; ++i) {
      Lane& at = lane(i);
      if ((at.state != State::kDialled && at.state != State::kClosing) || now_ns_ < at.due_ns) continue;
      if (at.state == State::kClosing) {
        at = Lane();
        pilot_.Closed(i);
      } else if (at.comes) {
        Open(i);
        pilot_.Opened(i);
      } else {
        at.state = State::kNone;
        pilot_.Refused(i);
      }
    }
  }

  void CarryOut(const LaneOrder& order) {
    Lane& at = lane(order.lane);
    switch (order.kind) {
      case LaneOrder::Kind::kOpen:
        if (at.state == State::kOpen) return pilot_.Opened(order.lane);
        ASSERT_NE(State::kClosing, at.state) << order.lane;
        at.state = State::kDialled;
        at.comes = Chance() >= weather_.refused;
        at.due_ns = now_ns_ + (Chance() < weather_.refused ? kDialBoundNs : 30 * kMillisecond);
        ++dials_;
        return;
      case LaneOrder::Kind::kMove:
        if (at.state == State::kOpen) at.path = static_cast<int>(random_() % rates_.size());
        ++dials_;
        return;
      case LaneOrder::Kind::kClose:
        ASSERT_EQ(State::kOpen, at.state) << order.lane;
        at.state = State::kClosing;
        at.due_ns = now_ns_ + Between(0, 500) * kMillisecond;
        return;
    }
  }

  void Check() {
    EXPECT_GE(pilot_.carrying(), 1);
    for (int i = 0; i < kLanesMax; ++i) {
      const State state = lane(i).state;
      // Only what has a socket is given anything to carry.
      EXPECT_TRUE(!pilot_.carries(i) || state == State::kOpen) << i;
      EXPECT_TRUE(state != State::kDialled || now_ns_ <= lane(i).due_ns + 4 * kSecond) << i;
    }
    EXPECT_EQ(std::count(opened_.begin(), opened_.end(), true), LaneBudget::kLanesMax - budget_.left());
  }

  const Weather weather_;
  std::mt19937_64 random_;
  LaneBudget budget_;
  OpenLanes open_lanes_{&budget_};
  std::vector<bool> opened_ = std::vector<bool>(kLanesMax, false);  // ever
  LanePilot pilot_;
  std::vector<Lane> lanes_;
  std::vector<uint64_t> acked_;
  std::vector<double> rates_;  // by path
  int64_t now_ns_ = kSecond;
  int64_t redrawn_ns_ = 0;
  double noise_ = 1;
  int dials_ = 0;
};

uint64_t Seeds() { return getenv("TCPX_TEST_LONG") != nullptr ? 200 : 25; }

// A minute each. `then`: seconds without weather after it.
void Weathers(int lanes, const Weather& weather) {
  for (uint64_t seed = 1; seed <= Seeds() && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Storm storm(lanes, weather, seed);
    storm.Run(60);
  }
}

TEST(LanePilotStormsTest, Stalls) {
  for (const double often : {0.5, 2.0, 5.0}) {
    Weather weather;
    weather.stalls = often;
    Weathers(4, weather);
    Weathers(2, weather);
    Weathers(1, weather);
  }
}

TEST(LanePilotStormsTest, OtherSpeeds) {
  Weather weather;
  weather.speeds = 1;
  Weathers(4, weather);
}

TEST(LanePilotStormsTest, DeathsAndDialsThatComeToNothing) {
  Weather weather;
  weather.deaths = 0.5;
  weather.refused = 0.5;
  Weathers(4, weather);
}

TEST(LanePilotStormsTest, Pauses) {
  Weather weather;
  weather.pauses = 1;
  weather.stalls = 1;
  Weathers(4, weather);
}

TEST(LanePilotStormsTest, AllAtOnce) {
  Weather weather{2, 1, 0.3, 0.3, 0.3, 0.3, 0.1};
  Weathers(4, weather);
  Weathers(32, weather);
}

// Whatever the network looks like: what is allowed at once and each minute is all.
TEST(LanePilotStormsTest, NobodyDialsForEver) {
  for (const double noise : {0.0, 0.05, 0.10, 0.20}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Weather weather;
      weather.noise = noise;
      weather.speeds = noise;
      Storm storm(4, weather, seed);
      storm.Run(600);
      const int early = storm.dials();
      storm.Run(600);
      const int late = storm.dials() - early;
      EXPECT_GE(tuning::kDialsAtOnce + 10 * tuning::kDialsEachMinute, early) << noise << " " << seed;
      EXPECT_GE(tuning::kDialsAtOnce + 10 * tuning::kDialsEachMinute, late) << noise << " " << seed;
    }
  }
}

}  // namespace
}  // namespace tcpx
