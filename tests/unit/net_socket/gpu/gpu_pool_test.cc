// Slots that are pinned beyond a pool's own, and what a GPU that is stuck keeps.
#include "net_socket/gpu/gpu_pool.h"

#include <algorithm>
#include <atomic>
#include <vector>

#include "tests/support/seed.h"
#include "tests/unit/net_socket/gpu/gpu_fixture.h"

namespace tcpx {
namespace {

constexpr int kOutOfMemory = 2;

constexpr int64_t kShortNs = 300 * kMillisecond;

class GpuPoolTest : public GpuFixture {
 protected:
  // Into `to`, from the slot.
  void StartCopy(const GpuBuffer& to, const GpuSlot& slot, size_t bytes) {
    const GpuScope scope(*driver_, pool_->place().context);
    ASSERT_TRUE(scope.status().ok());
    const auto at = reinterpret_cast<CuAddress>(to.data());
    ASSERT_EQ(driver_->api().copy_to_device(at, slot.data, bytes, pool_->stream()), kCuSuccess);
  }
};

TEST_F(GpuPoolTest, AnExtraSlotThatCanNotBeMadeLeavesNothing) {
  const FakeCudaCounts before = gpu_->counts();
  for (const char* call : {"cuEventCreate", "cuMemHostRegister"}) {
    gpu_->fake().fail(call, 0, kOutOfMemory);
    EXPECT_FALSE(pool_->TakeExtra().ok());
    EXPECT_FALSE(pool_->ReserveExtra(3).ok());
    pool_->ForgoExtra(3);
    EXPECT_EQ(gpu_->counts().pinned_bytes, before.pinned_bytes) << call;
    EXPECT_EQ(gpu_->counts().events, before.events) << call;
    gpu_->fake().reset();
  }
  // None counts as taken.
  ASSERT_TRUE(pool_->ReserveExtra(2).ok());
  EXPECT_EQ(gpu_->counts().pinned_bytes, before.pinned_bytes + 2 * kSlotBytes);
  pool_->ForgoExtra(2);
}

TEST_F(GpuPoolTest, WhatOthersHaveTakenIsNotReserved) {
  auto taken = pool_->TakeExtra();
  ASSERT_TRUE(taken.ok());
  const uint64_t before = gpu_->counts().pinned_bytes;
  ASSERT_TRUE(pool_->ReserveExtra(1).ok());
  EXPECT_EQ(gpu_->counts().pinned_bytes, before + kSlotBytes);
  pool_->GiveExtra(*taken);
  pool_->ForgoExtra(1);
}

TEST_F(GpuPoolTest, WaitsUntilItsCopiesAreOver) {
  const GpuBuffer memory(gpu_.get(), kSlotBytes);
  GpuSlot* const slot = pool_->Take(nullptr);
  gpu_->fake().delays(TestSeed(), 5000);
  for (int i = 0; i < 10; ++i) StartCopy(memory, *slot, 100);
  EXPECT_TRUE(pool_->AwaitCopies());
  EXPECT_EQ(gpu_->counts().waiting, 0u);
}

// An event that can't be recorded or asked is no reason to believe that copies are over.
TEST_F(GpuPoolTest, WaitsWithoutEventsToo) {
  const GpuBuffer memory(gpu_.get(), kSlotBytes);
  GpuSlot* const slot = pool_->Take(nullptr);
  for (const char* call : {"cuEventRecord", "cuEventQuery"}) {
    gpu_->fake().delays(TestSeed(), 5000);
    gpu_->fake().fail(call, 0, kOutOfMemory);
    for (int i = 0; i < 10; ++i) StartCopy(memory, *slot, 100);
    EXPECT_TRUE(pool_->AwaitCopies()) << call;
    EXPECT_EQ(gpu_->counts().waiting, 0u) << call;
    gpu_->fake().reset();
  }
}

// The GPU copies out of it whenever it goes on.
TEST_F(GpuPoolTest, WhatAStuckGpuMayUseIsNotFreed) {
  OpenPool(kShortNs);
  GpuBuffer memory(gpu_.get(), kSlotBytes);
  memory.Fill('.');
  const GpuSlot* const slot = pool_->Take(nullptr);
  std::fill_n(slot->data, kSlotBytes, 'x');
  gpu_->fake().hold(1);
  StartCopy(memory, *slot, kSlotBytes);
  EXPECT_FALSE(pool_->AwaitCopies());
  const FakeCudaCounts before = gpu_->counts();
  pool_.reset();
  EXPECT_EQ(gpu_->counts().pinned_bytes, before.pinned_bytes);
  EXPECT_EQ(gpu_->counts().streams, before.streams);
  left_ = gpu_->counts();
  AwaitStreams();
  EXPECT_EQ(memory.Read(0, kSlotBytes), std::vector<char>(kSlotBytes, 'x'));
}

TEST_F(GpuPoolTest, SlotsThatAStuckGpuMayUseAreLentToNobodyAgain) {
  OpenPool(kShortNs);
  const GpuBuffer memory(gpu_.get(), kSlotBytes);
  auto first = *GpuAllowance::Open(pool_.get());
  const GpuSlot* const shared = first->Take();
  const GpuSlot* const own = first->Take();
  ASSERT_TRUE(shared != nullptr && own != nullptr && shared != own);
  gpu_->fake().hold(1);
  StartCopy(memory, *own, 100);
  EXPECT_FALSE(pool_->AwaitCopies());
  first->Lose();
  first->Reset();
  EXPECT_EQ(first->Take(), nullptr);
  first.reset();
  auto second = *GpuAllowance::Open(pool_.get());
  const GpuSlot* const its_own = second->Take();
  EXPECT_TRUE(its_own != nullptr && its_own != own && its_own != shared);
  EXPECT_EQ(second->Take(), nullptr);
  AwaitStreams();
  // However long the next copy takes.
  gpu_->fake().delays(TestSeed(), 5000);
  StartCopy(memory, *its_own, 100);
  EXPECT_TRUE(pool_->AwaitCopies()) << "it goes on";
  second->Reset();
}

// Until it is over, the next wait for the stream only looks.
TEST_F(GpuPoolTest, AStuckGpuIsAwaitedOnce) {
  GpuPatience patience(kLongNs);
  std::atomic<bool> stuck{true};
  const auto never = [] { return false; };
  EXPECT_FALSE(patience.Await(&stuck, never)) << "at once";
  GpuPatience shorter(2 * kSecond);
  stuck = false;
  const int64_t began_ns = MonotonicNanos();
  EXPECT_FALSE(shorter.Await(&stuck, never));
  EXPECT_GE(MonotonicNanos() - began_ns, 2 * kSecond);
  EXPECT_TRUE(stuck);
  std::atomic<bool> other{false};
  int looks = 0;
  EXPECT_TRUE(shorter.Await(&other, [&] { return ++looks > 100; })) << "it works";
  EXPECT_FALSE(shorter.Await(&stuck, never));
  EXPECT_TRUE(shorter.Await(&stuck, [] { return true; }));
  EXPECT_FALSE(stuck);
}

}  // namespace
}  // namespace tcpx
