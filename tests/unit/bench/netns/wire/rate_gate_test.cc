#include "bench/netns/wire/rate_gate.h"

#include "gtest/gtest.h"

namespace tcpx {
namespace wire {
namespace {

constexpr uint64_t kGigabit = 1000000000;

TEST(RateGate, LetsPassAtTheRate) {
  RateGate gate;
  EXPECT_EQ(gate.Pass(1000, 1000, 1250, kGigabit), 1000 + 10000);
  EXPECT_EQ(gate.Pass(1000, 1000, 1250, kGigabit), 1000 + 20000);
  EXPECT_EQ(gate.Backlog(1000, kGigabit), 2500);
  EXPECT_EQ(gate.Backlog(11000, kGigabit), 1250);
  EXPECT_EQ(gate.Backlog(50000, kGigabit), 0);
}

TEST(RateGate, IdleTimeIsNotSaved) {
  RateGate gate;
  gate.Pass(1000, 1000, 1250, kGigabit);
  EXPECT_EQ(gate.Pass(90000, 90000, 1250, kGigabit), 100000);
}

TEST(RateGate, LookingLateLeavesNoGap) {
  RateGate gate;
  EXPECT_EQ(gate.Pass(1000, 1000, 1250, kGigabit), 11000);
  // Busy until 11000; what came since 5000 is looked at only at 40000.
  EXPECT_EQ(gate.Pass(5000, 40000, 1250, kGigabit), 21000);
}

TEST(RateGate, WithoutRateNothingWaits) {
  RateGate gate;
  EXPECT_EQ(gate.Pass(7, 7, 1 << 20, 0), 7);
  EXPECT_EQ(gate.Backlog(7, 0), 0);
}

TEST(RateGate, NewRateHoldsForWhatComesLater) {
  RateGate gate;
  gate.Pass(0, 0, 1250, kGigabit);
  EXPECT_EQ(gate.Pass(0, 0, 1250, kGigabit / 10), 10000 + 100000);
}

}  // namespace
}  // namespace wire
}  // namespace tcpx
