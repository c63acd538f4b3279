// What regMr takes, where there is no GPU.
#include <gtest/gtest.h>

#include <utility>

#include "net_socket/comm/comm.h"
#include "tests/unit/net_socket/comm/fake_end.h"

namespace tcpx {
namespace {

class RegisteredRegionsTest : public ::testing::Test {
 protected:
  Options options_;
  Runtime runtime_{options_};
  const ConnectionSetup setup_ = FakeSetup(&runtime_);
  RegisteredRegions regions_{&setup_};
  char memory_[100] = {};
};

TEST_F(RegisteredRegionsTest, HostMemoryComesAndGoes) {
  auto made = regions_.Make(memory_, sizeof(memory_), MemoryType::kHost);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(0u, regions_.count());
  MemoryRegion* const region = regions_.Add(*std::move(made));
  EXPECT_EQ(1u, regions_.count());
  EXPECT_EQ(memory_, region->data);
  EXPECT_EQ(sizeof(memory_), region->bytes);
  EXPECT_EQ(nullptr, region->gpu);
  regions_.Remove(region);
  EXPECT_EQ(0u, regions_.count());
}

TEST_F(RegisteredRegionsTest, WhatWasNotAnnouncedIsRefused) {
  for (MemoryType type : {MemoryType::kCuda, MemoryType::kDmaBuf}) {
    EXPECT_TRUE(absl::IsInvalidArgument(regions_.Make(memory_, sizeof(memory_), type).status()));
  }
}

TEST(MemoryRegionTest, ARequestWithoutARegionUsesWhatItOverlaps) {
  char memory[30] = {};
  MemoryRegion region;
  region.data = memory + 10;
  region.bytes = 10;
  MemoryRegion other;
  EXPECT_TRUE(region.UsedBy(&region, nullptr, 0));
  EXPECT_FALSE(region.UsedBy(&other, memory + 10, 10));
  EXPECT_TRUE(region.UsedBy(nullptr, memory, 11));
  EXPECT_TRUE(region.UsedBy(nullptr, memory + 19, 11));
  EXPECT_FALSE(region.UsedBy(nullptr, memory, 10));
  EXPECT_FALSE(region.UsedBy(nullptr, memory + 20, 10));
}

}  // namespace
}  // namespace tcpx
