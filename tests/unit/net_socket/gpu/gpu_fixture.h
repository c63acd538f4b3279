// gpu_fixture.h: a pool of slots on the stand-in for the CUDA driver.
//
// Threads: one.
#pragma once

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/gpu/gpu_pool.h"
#include "tests/support/gpu_lab.h"

namespace tcpx {

class GpuFixture : public testing::Test {
 protected:
  static constexpr size_t kSlotBytes = 64 << 10;

  void SetUp() override {
    auto gpu = GpuLab::Open();
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    gpu_ = *std::move(gpu);
    ASSERT_TRUE(gpu_->is_fake());
    auto driver = GpuDriver::Load();  // The one that is loaded.
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *std::move(driver);
    GpuPlace place;
    ASSERT_EQ(driver_->api().primary_retain(&place.context, 0), kCuSuccess);
    auto pool = GpuPool::Open(driver_.get(), place, kSlotBytes, 1);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }

  void TearDown() override {
    if (gpu_ == nullptr) return;
    gpu_->fake().reset();
    pool_.reset();
    EXPECT_EQ(gpu_->counts().pinned_bytes, 0u);
    EXPECT_EQ(gpu_->counts().events, 0u);
    EXPECT_EQ(gpu_->counts().streams, 0u);
  }

  std::unique_ptr<GpuLab> gpu_;
  std::unique_ptr<GpuDriver> driver_;
  std::unique_ptr<GpuPool> pool_;
};

}  // namespace tcpx
