// Random one-sided transfers between 2 to 4 ranks, in every mode: each signal is counted once, and what it covers is in
// place when it is seen.
#include <gtest/gtest.h>

#include "tests/plugin/rma/rma_lab.h"
#include "tests/plugin/rma/rma_model.h"
#include "tests/support/plugin_log.h"
#include "tests/support/secret_file.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

int Rounds() { return LongRun() ? 200 : 2; }

void RunModel(const Mode& mode, const RmaShape& shape, size_t stream_bytes) {
  const std::string missing = mode.ReasonToSkip();
  if (!missing.empty()) GTEST_SKIP() << missing;
  auto lab = RmaLab::Open(mode, shape);
  ASSERT_TRUE(lab.ok()) << lab.status();
  RmaModel model(lab->get(), TestSeed(), {shape.contexts, stream_bytes});
  absl::Status status = model.Prepare();
  for (int i = 0; i < Rounds() && status.ok(); ++i) status = model.Round();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(model.signals(), 0u);
  model.Deregister();
  status = (*lab)->CloseAll();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(0, WarningCount()) << LogText();
}

class RmaModelTest : public ::testing::TestWithParam<Mode> {};

TEST_P(RmaModelTest, TwoRanks) { RunModel(GetParam(), {.ranks = 2, .contexts = 2}, 4 << 20); }

INSTANTIATE_TEST_SUITE_P(EveryMode, RmaModelTest, ::testing::ValuesIn(AllModes()), ModeName);

class RmaMoreRanksTest : public ::testing::TestWithParam<Mode> {};

TEST_P(RmaMoreRanksTest, FourRanks) { RunModel(GetParam(), {.ranks = 4, .contexts = 2}, 300 << 10); }

TEST_P(RmaMoreRanksTest, ThreeRanksOfTheOldestTable) {
  RunModel(GetParam(), {.ranks = 3, .contexts = 1, .version = 14}, 1 << 20);
}

TEST_P(RmaMoreRanksTest, Encrypted) {
  Mode mode = GetParam();
  mode.environment["TCPX_ENCRYPT"] = "1";
  mode.environment["TCPX_SECRET_FILE"] = SecretFile();
  RunModel(mode, {.ranks = 2, .contexts = 2, .version = 15}, 1 << 20);
}

INSTANTIATE_TEST_SUITE_P(SomeModes, RmaMoreRanksTest, ::testing::ValuesIn(AllModes({1, 4})), ModeName);

TEST(RmaModelOnceTest, ManyContexts) { RunModel({.threads = 2, .lanes = 4}, {.ranks = 2, .contexts = 16}, 64 << 10); }

// A rank's only partner may be itself.
TEST(RmaModelOnceTest, OneRank) { RunModel({.threads = 2}, {.ranks = 1, .contexts = 2}, 1 << 20); }

}  // namespace
}  // namespace tcpx
