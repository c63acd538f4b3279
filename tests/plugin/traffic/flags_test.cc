// LL and LL128 through the real shared library in every mode, read by a second thread while they arrive. No line may
// show its flag before its data.
#include <gtest/gtest.h>

#include <vector>

#include "tests/plugin/traffic/rules_fixture.h"
#include "tests/support/flag_traffic.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

// Lines begin at their boundary, as NCCL's do.
struct alignas(128) Slot {
  uint64_t words[kFlagSlotBytes / 8];
};

class FlagsTest : public RulesTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the race is the point here, and the thread sanitizer would report it";
#endif
    RulesTest::SetUp();
    if (plugin_ != nullptr) MakePair(&pair_);
  }
};

TEST_P(FlagsTest, NoLineShowsItsFlagBeforeItsData) {
  std::vector<Slot> in(kFlagSlots);
  FlagTraffic traffic;
  traffic.seed = TestSeed();
  traffic.messages = 400 / static_cast<size_t>(TimeScale());
  for (size_t i = 0; i < kFlagSlots; ++i) traffic.views[i] = in[i].words;
  traffic.send = [this](void* data, size_t bytes, void** request) {
    return net().Isend(pair_.send, data, bytes, 0, nullptr, nullptr, request);
  };
  traffic.receive = [&](size_t slot, void** request) {
    void* data = in[slot].words;
    size_t capacity = kFlagSlotBytes;
    int tag = 0;
    *request = reinterpret_cast<void*>(static_cast<intptr_t>(NCCL_NET_OPTIONAL_RECV_COMPLETION));
    return net().Irecv(pair_.receive, 1, &data, &capacity, &tag, nullptr, nullptr, request);
  };
  traffic.test = [this](void* request, int* done) { return net().Test(request, done, nullptr); };
  EXPECT_EQ("", RunFlagTraffic(traffic));
}

INSTANTIATE_TEST_SUITE_P(EveryMode, FlagsTest, ::testing::ValuesIn(AllModes()), ModeName);

}  // namespace
}  // namespace tcpx
