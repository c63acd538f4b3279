// What is known of a connection's look, and of its latest ones.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "net_socket/pilot/measured_window.h"
#include "net_socket/pilot/tuning.h"

namespace tcpx {
namespace {

// New lanes that find the queue of all others go before a look has begun.
TEST(MeasuredWindowTest, ALookThatHasNotBegunBringsNothing) {
  MeasuredWindow window(1);
  const std::vector<uint64_t> acked = {1000};
  window.Start(tuning::kStepNs);
  EXPECT_EQ(0, window.total());
  EXPECT_EQ(0, window.others());
  (void)window.Measure(tuning::kStepNs, {acked});
  EXPECT_EQ(0, window.others());
}

TEST(PastWindowsTest, KnowsNoNoiseAtFirst) {
  PastWindows windows;
  EXPECT_EQ(0, windows.noise());
  EXPECT_EQ(0, windows.top());
  windows.Add(100);
  windows.Add(50);
  EXPECT_EQ(0, windows.noise());
  EXPECT_EQ(100, windows.top());
}

TEST(PastWindowsTest, APathThatFallsIsNoNoise) {
  PastWindows windows;
  for (int i = 0; i < 8; ++i) windows.Add(i < 4 ? 100 : 50);
  EXPECT_EQ(0, windows.noise());
}

TEST(PastWindowsTest, AFallIsSeenAcrossAPause) {
  for (const int before : {tuning::kLowLooksMax - 1, tuning::kLowLooksMax}) {
    PastWindows windows;
    for (int i = 0; i < 8; ++i) windows.Add(100, tuning::kLowLooksSettled);
    for (int i = 0; i < before; ++i) windows.Add(50, tuning::kLowLooksSettled);
    windows.WasStill();
    const int more = tuning::kLowLooksSettled - before;
    for (int i = 1; i < more; ++i) EXPECT_EQ(PastWindows::Change::kNone, windows.Add(50, tuning::kLowLooksSettled));
    const bool seen = windows.Add(50, tuning::kLowLooksSettled) == PastWindows::Change::kFell;
    EXPECT_EQ(before == tuning::kLowLooksMax, seen) << before << " low looks before the pause";
  }
}

TEST(PastWindowsTest, NoiseIsHowNeighboursDiffer) {
  PastWindows windows;
  for (int i = 0; i < 9; ++i) windows.Add(i % 2 == 0 ? 100 : 90);
  EXPECT_NEAR(0.1, windows.noise(), 1e-9);
  windows.Anew(200);
  EXPECT_EQ(200, windows.top());
  EXPECT_NEAR(0.1, windows.noise(), 1e-9);
  for (int i = 0; i < 20; ++i) windows.Add(i % 2 == 0 ? 100 : 1);
  EXPECT_EQ(tuning::kNoiseMax, windows.noise());
  EXPECT_EQ(100, windows.top()) << "the latest eight";
}

}  // namespace
}  // namespace tcpx
