// gpu_fixture.h: a pool of slots on the stand-in for the CUDA driver.
//
// Threads: one.
#pragma once

#include <memory>
#include <utility>

#include "common/clock.h"
#include "gtest/gtest.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/gpu/gpu_pool.h"
#include "tests/support/deadline.h"
#include "tests/support/gpu_lab.h"

namespace tcpx {

class GpuFixture : public testing::Test {
 protected:
  static constexpr size_t kSlotBytes = 64 << 10;
  static constexpr int64_t kLongNs = 3600 * kSecond;

  void SetUp() override {
    auto gpu = GpuLab::Open();
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    gpu_ = *std::move(gpu);
    ASSERT_TRUE(gpu_->is_fake());
    auto driver = GpuDriver::Load();  // The one that is loaded.
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *std::move(driver);
    left_ = gpu_->counts();
    OpenPool(kLongNs);
  }

  void TearDown() override {
    if (gpu_ == nullptr) return;
    gpu_->fake().reset();
    pool_.reset();
    EXPECT_EQ(gpu_->counts().pinned_bytes, left_.pinned_bytes);
    EXPECT_EQ(gpu_->counts().events, left_.events);
    EXPECT_EQ(gpu_->counts().streams, left_.streams);
  }

  // One slot, and a patience.
  void OpenPool(int64_t patience_ns) {
    pool_.reset();
    patience_ = std::make_unique<GpuPatience>(patience_ns);
    GpuPlace place;
    ASSERT_EQ(driver_->api().primary_retain(&place.context, 0), kCuSuccess);
    auto pool = GpuPool::Open(driver_.get(), patience_.get(), place, kSlotBytes, 1);
    ASSERT_TRUE(pool.ok()) << pool.status();
    pool_ = *std::move(pool);
  }

  // Nothing that streams were given is under way.
  void AwaitStreams() {
    gpu_->fake().hold(0);
    const Deadline deadline;
    while (gpu_->counts().waiting > 0) ASSERT_TRUE(deadline.Yield());
  }

  std::unique_ptr<GpuLab> gpu_;
  std::unique_ptr<GpuDriver> driver_;
  FakeCudaCounts left_ = {};  // by earlier tests, and by this one on purpose
  std::unique_ptr<GpuPatience> patience_;
  std::unique_ptr<GpuPool> pool_;
};

}  // namespace tcpx
