#include "bench/net_bench/buffers.h"

#include <memory>
#include <utility>

#include "bench/net_bench/pattern.h"
#include "common/payload/guard.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

class SlotRingTest : public testing::Test {
 protected:
  void SetUp() override {
    SlotRing::Shape shape;
    shape.regions = 2;
    shape.slots = 3;
    shape.bytes_max = 10000;
    absl::StatusOr<std::unique_ptr<SlotRing>> ring = SlotRing::Create(shape);
    ASSERT_TRUE(ring.ok()) << ring.status();
    ring_ = std::move(*ring);
  }
  std::unique_ptr<SlotRing> ring_;
};

TEST_F(SlotRingTest, SlotsLieApartInsideTheirRegion) {
  for (size_t bytes : {0, 1, 4096, 10000}) {
    ring_->Layout(bytes);
    const uint8_t* end = nullptr;
    for (int region = 0; region < 2; ++region) {
      for (int slot = 0; slot < 3; ++slot) {
        const uint8_t* data = ring_->Slot(region, slot);
        EXPECT_GE(data - kGuardBytes, region == 0 && slot == 0 ? ring_->Region(0) : end) << bytes;
        end = data + bytes + kSpareCapacity + kGuardBytes;
        EXPECT_LE(end, ring_->Region(region) + ring_->region_bytes()) << bytes;
      }
    }
  }
}

TEST_F(SlotRingTest, GuardsTellOfEveryByteAround) {
  ring_->Layout(100);
  FillPattern(MessageIdentity(), ring_->Slot(1, 2), 100);
  ASSERT_TRUE(ring_->CheckGuards(1, 2, 100).ok());
  for (int offset :
       {-1, -static_cast<int>(kGuardBytes), 100, 100 + static_cast<int>(kSpareCapacity + kGuardBytes) - 1}) {
    ring_->Slot(1, 2)[offset] ^= 1;
    EXPECT_EQ(ring_->CheckGuards(1, 2, 100).code(), absl::StatusCode::kDataLoss) << offset;
    ring_->Slot(1, 2)[offset] ^= 1;
  }
}

TEST(SlotRing, RefusesMoreThanTheMachineHas) {
  SlotRing::Shape shape;
  shape.regions = 100000;
  shape.slots = 32;
  shape.bytes_max = 1 << 30;
  EXPECT_EQ(SlotRing::Create(shape).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
