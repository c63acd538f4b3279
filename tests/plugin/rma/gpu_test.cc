// One-sided transfers with GPU memory, of a stand-in driver that copies late and in any order between streams: no byte
// is wrong, and no signal is seen before what it covers is in place.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/plugin/rma/rma_lab.h"
#include "tests/plugin/rma/rma_model.h"
#include "tests/support/deadline.h"
#include "tests/support/gpu_lab.h"
#include "tests/support/plugin_log.h"
#include "tests/support/rank.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"

namespace tcpx {
namespace {

constexpr unsigned kAll = RmaModel::kSource | RmaModel::kWindow | RmaModel::kSignals | RmaModel::kGotten;
constexpr unsigned kLateMicros = 300;
constexpr int kKillMicros = 10'000;

class RmaGpuTest : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().ReasonToSkip();
    if (!missing.empty()) GTEST_SKIP() << missing;
    auto gpu = GpuLab::Open();
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    gpu_ = *std::move(gpu);
    ASSERT_TRUE(gpu_->is_fake());
    gpu_->fake().delays(TestSeed(), kLateMicros);
  }

  void TearDown() override {
    if (gpu_ == nullptr) return;
    const FakeCudaCounts left = gpu_->counts();
    EXPECT_EQ(0u, left.pinned_bytes);
    EXPECT_EQ(0u, left.streams);
    EXPECT_EQ(0u, left.events);
    gpu_->fake().reset();
  }

  // Slots are few, so that transfers wait for some.
  absl::StatusOr<std::unique_ptr<RmaLab>> Open(RmaShape shape) {
    Mode mode = GetParam();
    mode.environment["TCPX_TEST_GPU_SLOT_BYTES"] = "64K";
    mode.environment["TCPX_GPU_POOL_BYTES"] = "1M";
    mode.environment["NCCL_SOCKET_RETRY_SLEEP_MSEC"] = "1";
    shape.gpu = gpu_.get();
    return RmaLab::Open(mode, shape);
  }

  void RunModel(const RmaShape& shape, const RmaModel::Shape& model_shape) {
    auto lab = Open(shape);
    ASSERT_TRUE(lab.ok()) << lab.status();
    RmaModel model(lab->get(), TestSeed(), model_shape);
    absl::Status status = model.Prepare();
    for (int i = 0; i < (LongRun() ? 100 : 2) && status.ok(); ++i) status = model.Round();
    EXPECT_TRUE(status.ok()) << status;
    model.Deregister();
    status = (*lab)->CloseAll();
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(0, WarningCount()) << LogText();
  }

  std::unique_ptr<GpuLab> gpu_;
};

// Words that kernels may set to 0 again, as the model does between its rounds.
TEST_P(RmaGpuTest, AllOnTheGpu) { RunModel({.ranks = 2, .contexts = 2}, {2, 1 << 20, kAll}); }

TEST_P(RmaGpuTest, SignalsThatAreNeverReset) {
  RunModel({.ranks = 3, .contexts = 2}, {2, 256 << 10, kAll, /*never_reset=*/true});
}

TEST_P(RmaGpuTest, SignalsInHostMemory) {
  RunModel({.ranks = 2, .contexts = 2}, {2, 256 << 10, kAll & ~RmaModel::kSignals});
}

TEST_P(RmaGpuTest, SourcesInHostMemory) {
  RunModel({.ranks = 2, .contexts = 2}, {2, 256 << 10, RmaModel::kWindow | RmaModel::kSignals});
}

TEST_P(RmaGpuTest, WindowsInHostMemory) {
  RunModel({.ranks = 2, .contexts = 2}, {2, 256 << 10, kAll & ~RmaModel::kWindow});
}

// Groups that have a word in common add to it as if it were theirs alone.
TEST_P(RmaGpuTest, OneWordOfSeveralGroups) {
  auto lab = Open({.ranks = 3, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  GpuBuffer word(gpu_.get(), sizeof(uint64_t));
  word.Fill(0);
  void* mhandle = nullptr;
  for (int i = 0; i < 3; ++i) mhandle = Must((*lab)->RegisterAt(i, word.data(), word.bytes(), 1));
  constexpr uint64_t kAdds = 24;
  std::vector<std::pair<int, void*>> requests;
  for (uint64_t i = 0; i < kAdds; ++i) {
    for (int from = 0; from < 3; ++from) {
      RmaRange range;
      range.rank = static_cast<uint32_t>((from + static_cast<int>(i)) % 3);
      void* request = nullptr;
      RmaSignal signal;
      signal.region = mhandle;
      ASSERT_EQ(ncclSuccess, (*lab)->rma().IputSignal((*lab)->rank(from).contexts, 0, range, signal, 0, &request));
      requests.emplace_back(from, request);
    }
  }
  for (const auto& [rank, request] : requests) Must((*lab)->Wait(rank, request));
  const auto* const seen = static_cast<const uint64_t*>(gpu_->fake().view(reinterpret_cast<uint64_t>(word.data())));
  Must((*lab)->Until([&] { return __atomic_load_n(seen, __ATOMIC_ACQUIRE) >= 3 * kAdds; }));
  EXPECT_EQ(3 * kAdds, *seen);
  Must((*lab)->CloseAll());
}

// What the fake copies after the memory was freed ends the process.
TEST_P(RmaGpuTest, CopiesEndBeforeTheirMemory) {
  gpu_->fake().delays(TestSeed(), 2000);
  auto lab = Open({.ranks = 2, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  RmaMemory* const source = Must((*lab)->Register(4096, 0, false));
  GpuBuffer own(gpu_.get(), 4096);
  auto window = std::make_unique<GpuBuffer>(gpu_.get(), 4096);
  void* const mhandle = Must((*lab)->RegisterAt(0, own.data(), 4096));
  Must((*lab)->RegisterAt(1, window->data(), 4096));
  const uint64_t before = gpu_->counts().copies;
  // The first one goes alone, the others share a message.
  for (int i = 0; i < 12; ++i) {
    RmaRange range{source->of(0), 0, mhandle, 0, 4096, 1};
    void* request = nullptr;
    ASSERT_EQ(ncclSuccess, (*lab)->rma().Iput((*lab)->rank(0).contexts, 0, range, 0, &request));
  }
  Must((*lab)->Until([&] { return gpu_->counts().copies >= before + 2; }));
  ASSERT_EQ(ncclSuccess, (*lab)->rma().DeregMrSym((*lab)->rank(1).group, mhandle));
  window.reset();
  Must((*lab)->CloseAll());
}

// A rank's puts to itself are under way until they are copied.
TEST_P(RmaGpuTest, OwnPutsEndBeforeTheirSource) {
  gpu_->fake().delays(TestSeed(), 2000);
  auto lab = Open({.ranks = 1, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  auto source = std::make_unique<GpuBuffer>(gpu_.get(), 4096);
  source->Fill('s');
  void* const mhandle = Must((*lab)->RegisterAt(0, source->data(), 4096, 1));
  RmaMemory* const window = Must((*lab)->Register(4096, 0, true));
  for (int i = 0; i < 24; ++i) {
    RmaRange range{mhandle, 0, window->of(0), 0, 4096, 0};
    void* request = nullptr;
    ASSERT_EQ(ncclSuccess, (*lab)->rma().Iput((*lab)->rank(0).contexts, 0, range, 0, &request));
  }
  ASSERT_EQ(ncclSuccess, (*lab)->rma().DestroyContext((*lab)->rank(0).contexts));
  (*lab)->rank(0).contexts = nullptr;
  source.reset();
  EXPECT_EQ(std::string(4096, 's'), std::string(window->at(0), 4096));
  Must((*lab)->CloseAll());
}

// The driver's words reach both ranks.
TEST_P(RmaGpuTest, ARefusedCopyEndsTheGroup) {
  auto lab = Open({.ranks = 2, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  RmaMemory* const source = Must((*lab)->Register(64, 0, false));
  RmaMemory* const window = Must((*lab)->Register(64, 0, true));
  gpu_->fake().fail("cuMemcpyHtoDAsync", 0, 700);
  RmaRange range{source->of(0), 0, window->of(0), 0, 64, 1};
  void* request = nullptr;
  ASSERT_EQ(ncclSuccess, (*lab)->rma().Iput((*lab)->rank(0).contexts, 0, range, 0, &request));
  Must((*lab)->UntilFailed(1));
  Must((*lab)->UntilFailed(0));
  EXPECT_GT(CountInLog("rank 1 of 2: the CUDA driver's cuMemcpyHtoDAsync failed"), 0) << LogText();
}

TEST_P(RmaGpuTest, MemoryThatIsNotTheGpusIsRefused) {
  auto lab = Open({.ranks = 1, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  uint64_t host = 0;
  EXPECT_FALSE((*lab)->RegisterAt(0, &host, sizeof(host)).ok());
  EXPECT_GT(CountInLog("was given as GPU memory, but is not"), 0) << LogText();
}

TEST_P(RmaGpuTest, LanesDie) {
  auto lab = Open({.ranks = 2, .contexts = 2});
  ASSERT_TRUE(lab.ok()) << lab.status();
  RmaModel model(lab->get(), TestSeed(), {2, 512 << 10, kAll, /*never_reset=*/true});
  absl::Status status = model.Prepare();
  if (status.ok()) status = model.Round();
  ASSERT_TRUE(status.ok()) << status;
  const Deadline deadline(LongRun() ? 600 : 60);
  // Rarely enough that each lane moves something before it dies again: else a middlebox is blamed, and rightly.
  KillerThread killer(TestSeed(), kKillMicros);
  do {
    status = model.Round();
  } while (status.ok() && (LongRun() ? killer.kills() < 1000 : CountInLog(" goes on, ") == 0) && !deadline.Over());
  killer.Stop();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_GT(CountInLog(" goes on, "), 0) << killer.kills() << " kills";
  EXPECT_EQ(0, WarningCount()) << LogText();
  model.Deregister();
  status = (*lab)->CloseAll();
  EXPECT_TRUE(status.ok()) << status;
}

INSTANTIATE_TEST_SUITE_P(EveryMode, RmaGpuTest, ::testing::ValuesIn(AllModes({1, 4})), ModeName);

}  // namespace
}  // namespace tcpx
