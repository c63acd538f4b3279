// Slots that are pinned beyond a pool's own.
#include "net_socket/gpu/gpu_pool.h"

#include "tests/unit/net_socket/gpu/gpu_fixture.h"

namespace tcpx {
namespace {

constexpr int kOutOfMemory = 2;

class GpuPoolTest : public GpuFixture {};

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

}  // namespace
}  // namespace tcpx
