// Sockets of a group's connections are killed at random: no byte is wrong, no signal is lost or counted twice, and
// nobody sees an error. TCPX_TEST_LONG=1 goes on until a thousand have died in each test.
#include <gtest/gtest.h>

#include "tests/plugin/rma/rma_lab.h"
#include "tests/plugin/rma/rma_model.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_log.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

constexpr int kLongKills = 1000;
constexpr int kEveryMicros = 2000;
// Together they met the loss of a health socket during a close, one in 250 closes, in every eighth run of all modes.
constexpr int kCloses = 10;
constexpr int kHealthEveryMicros = 500;

bool Enough(const KillerThread& killer) {
  return LongRun() ? killer.kills() >= kLongKills : CountInLog(" goes on, ") > 0;
}

class RmaKilledTest : public ::testing::TestWithParam<Mode> {};

TEST_P(RmaKilledTest, SignalsAreCountedOnce) {
  Mode mode = GetParam();
  const std::string missing = mode.ReasonToSkip();
  if (!missing.empty()) GTEST_SKIP() << missing;
  mode.environment["TCPX_HEAL"] = "1";
  mode.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
  auto lab = RmaLab::Open(mode, {.ranks = 3, .contexts = 2});
  ASSERT_TRUE(lab.ok()) << lab.status();
  RmaModel model(lab->get(), TestSeed(), {2, 512 << 10});
  absl::Status status = model.Prepare();
  // All connections are there before the first one dies.
  if (status.ok()) status = model.Round();
  ASSERT_TRUE(status.ok()) << status;
  const Deadline deadline(LongRun() ? 600 : 60);
  KillerThread killer(TestSeed(), kEveryMicros);
  do {
    status = model.Round();
  } while (status.ok() && !Enough(killer) && !deadline.Over());
  killer.Stop();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(CountInLog(" goes on, "), 0) << killer.kills() << " kills";
  model.Deregister();
  status = (*lab)->CloseAll();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(0, WarningCount()) << LogText();
}

// The ends close at different moments, and the health socket that would say so keeps dying.
TEST_P(RmaKilledTest, AnOrderlyEndWithoutAHealthSocketIsNoFailure) {
  Mode mode = GetParam();
  const std::string missing = mode.ReasonToSkip();
  if (!missing.empty()) GTEST_SKIP() << missing;
  mode.environment["TCPX_HEAL"] = "1";
  mode.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
  for (int i = 0; i < Repeats(kCloses); ++i) {
    auto lab = RmaLab::Open(mode, {.ranks = 2, .contexts = 2});
    ASSERT_TRUE(lab.ok()) << lab.status();
    RmaModel model(lab->get(), TestSeed() + i, {2, 4 << 10});
    absl::Status status = model.Prepare();
    if (status.ok()) status = model.Round();
    ASSERT_TRUE(status.ok()) << status;
    model.Deregister();
    KillerThread killer(TestSeed() + i, kHealthEveryMicros, nullptr, true);
    status = (*lab)->CloseAll();
    killer.Stop();
    EXPECT_TRUE(status.ok()) << "close " << i << ": " << status;
  }
  EXPECT_EQ(0, WarningCount()) << LogText();
}

INSTANTIATE_TEST_SUITE_P(EveryMode, RmaKilledTest, ::testing::ValuesIn(AllModes({1, 4})), ModeName);

}  // namespace
}  // namespace tcpx
