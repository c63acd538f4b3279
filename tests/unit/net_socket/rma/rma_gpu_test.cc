// Groups with memory of a GPU, of a stand-in driver: who is looked at while it copies, and who waits for it.
#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "common/clock.h"
#include "gtest/gtest.h"
#include "net_socket/rma/group.h"
#include "net_socket/rma/rma.h"
#include "tests/support/deadline.h"
#include "tests/support/gpu_lab.h"
#include "tests/unit/nccl/fake_plugin.h"
#include "tests/unit/net_socket/rma/hub_lab.h"

namespace tcpx {
namespace {

struct CountedListen : ListenComm {
  std::atomic<int> looks{0};
};

// Counts how often each group is moved: it accepts each time.
class CountingNet final : public FakePlugin {
 public:
  absl::StatusOr<ListenComm*> Listen(Context*, int, void*) override {
    listens_.push_back(std::make_unique<CountedListen>());
    return listens_.back().get();
  }
  absl::StatusOr<Comm*> Accept(ListenComm* listen) override {
    ++static_cast<CountedListen*>(listen)->looks;
    return nullptr;
  }
  int looks(size_t listen) const { return listens_[listen]->looks; }

 private:
  std::vector<std::unique_ptr<CountedListen>> listens_;
};

class RmaGpuUnitTest : public testing::Test {
 protected:
  // A group of one rank, with a word of GPU memory for its signals.
  struct Group {
    RmaListen* listen = nullptr;
    RmaGroup* group = nullptr;
    RmaContexts* contexts = nullptr;
    std::unique_ptr<GpuBuffer> memory;
    RmaHandle word = 0;
  };

  void SetUp() override {
    auto gpu = GpuLab::Open();
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    gpu_ = *std::move(gpu);
    ASSERT_TRUE(gpu_->is_fake());
    hub_ = std::make_unique<HubLab>();
    limits_.gpu = hub_->hub();
    limits_.linger_ns = kSecond;
    rma_ = std::make_unique<Rma>(&net_, [this] {
      unused_when_offered_ = rma_->Unused();
      return limits_;
    });
  }
  void TearDown() override {
    if (gpu_ == nullptr) return;
    gpu_->fake().reset();
    for (Group& one : groups_) {
      rma_->Close(one.group);
      rma_->CloseListen(one.listen);
    }
    EXPECT_TRUE(rma_->Unused());
    rma_.reset();
    groups_.clear();
    hub_.reset();
    EXPECT_EQ(0u, gpu_->counts().pinned_bytes);
  }

  Group& Open() {
    Group made;
    static std::array<char, kHandleBytes> handle = {};
    static void* all[] = {handle.data()};
    made.listen = *rma_->Listen(nullptr, 0, handle.data());
    made.group = *rma_->Connect(made.listen, absl::MakeSpan(all), 0);
    made.contexts = *rma_->OpenContexts(made.group, 1, kNoTrafficClass);
    made.memory = std::make_unique<GpuBuffer>(gpu_.get(), sizeof(uint64_t));
    made.memory->Fill(0);
    made.word = *rma_->Register(made.group, made.memory->data(), sizeof(uint64_t), MemoryType::kCuda, RmaUse::kSignals);
    groups_.push_back(std::move(made));
    return groups_.back();
  }
  RmaRequest* Signal(const Group& to) {
    RmaOperation signal;
    signal.has_signal = true;
    signal.signal = to.word;
    signal.signal_add = 1;
    RmaRequest* request = nullptr;
    EXPECT_TRUE(rma_->Post(to.contexts, 0, signal, &request).ok());
    return request;
  }
  void Finish(const Group& in, RmaRequest* request) {
    const Deadline deadline;
    for (bool done = false; !done;) {
      ASSERT_TRUE(rma_->Test(in.group, request, &done).ok());
      ASSERT_TRUE(deadline.Yield());
    }
  }

  std::unique_ptr<GpuLab> gpu_;
  std::unique_ptr<HubLab> hub_;
  RmaLimits limits_;
  CountingNet net_;
  bool unused_when_offered_ = true;
  std::unique_ptr<Rma> rma_;
  std::deque<Group> groups_;
};

// An exit that comes now leaves to it what it is about to use.
TEST_F(RmaGpuUnitTest, AGroupCountsBeforeItAsksForAnything) {
  EXPECT_TRUE(rma_->Unused());
  Open();
  EXPECT_FALSE(unused_when_offered_);
  EXPECT_FALSE(rma_->Unused());
}

TEST_F(RmaGpuUnitTest, AConnectThatIsRefusedIsNotCounted) {
  RmaListen listen;
  EXPECT_FALSE(rma_->Connect(&listen, {}, 0).ok());
  EXPECT_TRUE(rma_->Unused());
}

// Both use the same GPU, and its stream. All are looked at once a millisecond at most, which holds on any machine.
TEST_F(RmaGpuUnitTest, OnlyGroupsThatCopyAreLookedAtOften) {
  const Group& busy = Open();
  const Group& idle = Open();
  Finish(idle, Signal(idle));
  for (int attempt = 0; attempt < 5; ++attempt) {
    gpu_->fake().hold(1);
    RmaRequest* const request = Signal(busy);
    const int busy_before = net_.looks(0);
    const int idle_before = net_.looks(1);
    const int64_t began_ns = MonotonicNanos();
    const Deadline deadline;
    while (net_.looks(0) < busy_before + 100) ASSERT_TRUE(deadline.Yield());
    const int looks = net_.looks(1) - idle_before;
    EXPECT_LE(looks, (MonotonicNanos() - began_ns) / kMillisecond + 2);
    gpu_->fake().hold(0);
    Finish(busy, request);
  }
}

// The group's other calls go on while one waits for the GPU.
TEST_F(RmaGpuUnitTest, ADeregistrationThatWaitsKeepsNobodyElse) {
  const Group& one = Open();
  GpuBuffer other(gpu_.get(), 64);
  const auto handle = *rma_->Register(one.group, other.data(), 64, MemoryType::kCuda, RmaUse::kOther);
  gpu_->fake().hold(1);
  RmaRequest* const request = Signal(one);
  std::atomic<bool> deregistered{false};
  std::thread waits([&] {
    rma_->Deregister(one.group, handle);
    deregistered = true;
  });
  const uint64_t before = gpu_->counts().queries;
  const Deadline deadline(10);
  std::atomic<bool> progressed{false};
  std::thread goes_on([&] {
    const Deadline its_own(10);
    while (gpu_->counts().queries < before + 20 && its_own.Yield()) {
    }
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(rma_->Progress(one.contexts).ok());
    progressed = true;
  });
  while (!progressed && deadline.Yield()) {
  }
  EXPECT_TRUE(progressed);
  EXPECT_FALSE(deregistered);
  gpu_->fake().hold(0);
  goes_on.join();
  waits.join();
  Finish(one, request);
}

}  // namespace
}  // namespace tcpx
