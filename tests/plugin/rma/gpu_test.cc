// One-sided transfers with GPU memory, of a stand-in driver that copies late and in any order between streams: no byte
// is wrong, and no signal is seen before what it covers is in place.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/plugin/rma/rma_lab.h"
#include "tests/plugin/rma/rma_model.h"
#include "tests/support/deadline.h"
#include "tests/support/fake_cuda/fake_gdr.h"
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
    if (by_gdr_) mode.environment["TCPX_RMA_GDRCOPY"] = "1";
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
  bool by_gdr_ = false;
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

// Signals and short puts that the CPU writes by itself are in no other order than those of the stream.
TEST_P(RmaGpuTest, WithGdrCopy) {
  const FakeGdr gdr = FakeGdr::Open();
  by_gdr_ = true;
  // Puts from GPU memory are never short.
  RunModel({.ranks = 2, .contexts = 2}, {2, 256 << 10, RmaModel::kWindow | RmaModel::kSignals, /*never_reset=*/true});
  EXPECT_EQ(0, gdr.pinned());
}

// The stream is not used: it would never do it.
TEST_P(RmaGpuTest, GdrCopyWritesShortPutsAndTheirSignals) {
  const FakeGdr gdr = FakeGdr::Open();
  by_gdr_ = true;
  auto lab = Open({.ranks = 2, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  constexpr size_t kBytes = 5000;
  RmaMemory* const source = Must((*lab)->Register(kBytes, 0, false));
  RmaMemory* const window = Must((*lab)->Register(kBytes, 0, true));
  RmaMemory* const signals = Must((*lab)->Register(sizeof(uint64_t), NCCL_NET_MR_FLAG_FORCE_SO, true));
  const uint64_t before = gdr.written();
  gpu_->fake().hold(1);
  for (int i = 1; i <= 20; ++i) {
    std::memset(source->at(0), i, kBytes);
    RmaRange range{source->of(0), 0, window->of(0), 0, kBytes, 1};
    RmaSignal signal;
    signal.region = signals->of(0);
    void* request = nullptr;
    ASSERT_EQ(ncclSuccess, (*lab)->rma().IputSignal((*lab)->rank(0).contexts, 0, range, signal, 0, &request));
    Must((*lab)->Until([&] { return signals->Word(1, 0) == static_cast<uint64_t>(i); }));
    EXPECT_EQ(std::string(kBytes, static_cast<char>(i)), std::string(window->at(1), kBytes));
    Must((*lab)->Wait(0, request));
  }
  gpu_->fake().hold(0);
  EXPECT_EQ(gdr.written(), before + 20 * kBytes);
  Must((*lab)->CloseAll());
  EXPECT_EQ(0, gdr.pinned());
}

// A word of GPU memory that several groups of the process have registered, and add to.
class SharedWord {
 public:
  SharedWord(GpuLab* gpu, RmaLab* lab, uint64_t flags) : gpu_(gpu), lab_(lab), word_(gpu, sizeof(uint64_t)) {
    word_.Fill(0);
    for (int i = 0; i < lab->ranks(); ++i) mhandle_ = Must(lab->RegisterAt(i, word_.data(), word_.bytes(), flags));
  }
  // A rank's signal to itself: its group has given the addition to the stream when this returns.
  void Add(int rank) {
    RmaRange nothing;
    nothing.rank = static_cast<uint32_t>(rank);
    RmaSignal signal;
    signal.region = mhandle_;
    void* request = nullptr;
    ASSERT_EQ(ncclSuccess, lab_->rma().IputSignal(lab_->rank(rank).contexts, 0, nothing, signal, 0, &request));
    requests_.emplace_back(rank, request);
  }
  void ExpectInTheEnd(uint64_t value) {
    for (const auto& [rank, request] : requests_) Must(lab_->Wait(rank, request));
    requests_.clear();
    const auto* const seen = static_cast<const uint64_t*>(gpu_->fake().view(reinterpret_cast<uint64_t>(word_.data())));
    EXPECT_EQ(value, __atomic_load_n(seen, __ATOMIC_ACQUIRE));
  }

 private:
  GpuLab* const gpu_;
  RmaLab* const lab_;
  GpuBuffer word_;
  void* mhandle_ = nullptr;
  std::vector<std::pair<int, void*>> requests_;
};

// With a stream for each group, all would read the word before any writes it: most additions would be lost.
TEST_P(RmaGpuTest, OneWordOfSeveralGroups) {
  gpu_->fake().delays(TestSeed(), 0);
  auto lab = Open({.ranks = 3, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  SharedWord word(gpu_.get(), lab->get(), NCCL_NET_MR_FLAG_FORCE_SO);
  constexpr uint64_t kRounds = 16;
  for (uint64_t i = 1; i <= kRounds; ++i) {
    gpu_->fake().hold(1);
    for (int rank = 0; rank < 3; ++rank) word.Add(rank);
    gpu_->fake().hold(0);
    const Deadline deadline;
    while (gpu_->counts().waiting > 0) ASSERT_TRUE(deadline.Yield());
    word.ExpectInTheEnd(3 * i);
  }
  Must((*lab)->CloseAll());
}

TEST_P(RmaGpuTest, GdrCopyWithoutItsKernelModule) {
  const FakeGdr gdr = FakeGdr::Open();
  gdr.fail("gdr_open", 1);
  by_gdr_ = true;
  auto lab = Open({.ranks = 1, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  SharedWord word(gpu_.get(), lab->get(), NCCL_NET_MR_FLAG_FORCE_SO);
  word.Add(0);
  word.ExpectInTheEnd(1);
  EXPECT_EQ(1, CountInLog("TCPX_RMA_GDRCOPY has no effect")) << LogText();
  Must((*lab)->CloseAll());
}

// If each group remembered the word for itself, the second addition of the first would not know that of the second.
TEST_P(RmaGpuTest, OneRememberedWordOfSeveralGroups) {
  auto lab = Open({.ranks = 2, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  SharedWord word(gpu_.get(), lab->get(), NCCL_NET_MR_FLAG_FORCE_SO | NCCL_NET_MR_FLAG_SIGNAL_NEVER_RESET);
  for (uint64_t i = 1; i <= 8; ++i) {
    word.Add(static_cast<int>(i % 2));
    word.ExpectInTheEnd(i);
  }
  Must((*lab)->CloseAll());
}

// A group is closed with its memory registered, as after an error, and that memory is a later group's: what the first
// one remembered of its words is of no use any more.
TEST_P(RmaGpuTest, AWordOfAGroupThatIsMadeAnew) {
  GpuBuffer memory(gpu_.get(), sizeof(uint64_t));
  auto* const word = static_cast<uint64_t*>(gpu_->fake().view(reinterpret_cast<uint64_t>(memory.data())));
  // One group stays, so that the process's use of the GPU does.
  auto lab = Open({.ranks = 2, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  for (int rank = 0; rank < 2; ++rank) {
    memory.Fill(0);
    void* const mhandle = Must((*lab)->RegisterAt(rank, memory.data(), memory.bytes(),
                                                  NCCL_NET_MR_FLAG_FORCE_SO | NCCL_NET_MR_FLAG_SIGNAL_NEVER_RESET));
    RmaRange nothing;
    nothing.rank = static_cast<uint32_t>(rank);
    RmaSignal signal;
    signal.region = mhandle;
    for (uint64_t i = 1; i <= 3; ++i) {
      void* request = nullptr;
      ASSERT_EQ(ncclSuccess, (*lab)->rma().IputSignal((*lab)->rank(rank).contexts, 0, nothing, signal, 0, &request));
      Must((*lab)->Wait(rank, request));
      EXPECT_EQ(i, __atomic_load_n(word, __ATOMIC_ACQUIRE)) << "group " << rank;
    }
    Must((*lab)->Close(rank));
  }
}

// The target makes no call: its thread looks at the copies often enough.
TEST_P(RmaGpuTest, CopiesOfAnIdleTargetAreLookedAtOften) {
  auto lab = Open({.ranks = 1, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  SharedWord word(gpu_.get(), lab->get(), NCCL_NET_MR_FLAG_FORCE_SO);
  // With 8 ms from one to the next they would take 1.6 s. Again where others had the machine.
  constexpr uint64_t kLooks = 200;
  bool often = false;
  const Deadline all;
  for (uint64_t i = 1; !often && !all.Over(); ++i) {
    gpu_->fake().hold(1);
    word.Add(0);
    const uint64_t before = gpu_->counts().queries;
    const auto began = std::chrono::steady_clock::now();
    const Deadline deadline;
    while (gpu_->counts().queries < before + kLooks && deadline.Yield()) {
    }
    often = std::chrono::steady_clock::now() - began < std::chrono::milliseconds(kLooks * 4);
    gpu_->fake().hold(0);
    word.ExpectInTheEnd(i);
  }
  EXPECT_TRUE(often);
  Must((*lab)->CloseAll());
}

// A GPU that carries out nothing costs a deregistration and a close a bounded time, and the group its life.
TEST_P(RmaGpuTest, AGpuThatIsStuckEndsTheGroup) {
  setenv("TCPX_PEER_TIMEOUT", "1", 1);
  auto lab = Open({.ranks = 1, .contexts = 1});
  ASSERT_TRUE(lab.ok()) << lab.status();
  GpuBuffer memory(gpu_.get(), 4096);
  void* const mhandle = Must((*lab)->RegisterAt(0, memory.data(), memory.bytes(), NCCL_NET_MR_FLAG_FORCE_SO));
  gpu_->fake().hold(1);
  RmaRange nothing;
  RmaSignal signal;
  signal.region = mhandle;
  void* request = nullptr;
  ASSERT_EQ(ncclSuccess, (*lab)->rma().IputSignal((*lab)->rank(0).contexts, 0, nothing, signal, 0, &request));
  ASSERT_EQ(ncclSuccess, (*lab)->rma().DeregMrSym((*lab)->rank(0).group, mhandle));
  EXPECT_TRUE((*lab)->HasFailed(0));
  EXPECT_GT(CountInLog("rank 0 of 1, here: the GPU has not carried out copies of one-sided transfers for 1.0 s"), 0)
      << LogText();
  Must((*lab)->CloseAll());
  gpu_->fake().hold(0);
  const Deadline deadline;
  while (gpu_->counts().waiting > 0) ASSERT_TRUE(deadline.Yield()) << "before the memory goes";
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
