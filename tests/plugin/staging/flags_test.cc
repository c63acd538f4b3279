// LL and LL128 into GPU memory, whose reader is a second thread. The stand-in driver writes the ends of lines first, so
// that a plain copy shows each line's flag before its data.
#include "tests/plugin/staging/staging_fixture.h"
#include "tests/support/flag_traffic.h"

namespace tcpx {
namespace {

class FlagsTest : public StagingTest {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "the race is the point here, and the thread sanitizer would report it";
#endif
    StagingTest::SetUp();
    if (plugin_ != nullptr && !lab_->is_fake()) GTEST_SKIP() << "a host thread can't poll a real GPU's memory";
  }

  // `hint`: receives say that they are LL's or LL128's.
  void Run(bool hint) {
    Buffer in(lab_.get(), true, kFlagSlots * kFlagSlotBytes);
    in.Fill(0);
    void* const handle = Register(pair_.receive, &in);
    FlagTraffic traffic;
    traffic.seed = TestSeed();
    traffic.messages = 240 / static_cast<size_t>(TimeScale());
    for (size_t i = 0; i < kFlagSlots; ++i) {
      traffic.views[i] = lab_->fake().view(reinterpret_cast<uint64_t>(in.data()) + i * kFlagSlotBytes);
    }
    traffic.send = [this](void* data, size_t bytes, void** request) { return TrySend(data, bytes, nullptr, request); };
    traffic.receive = [&](size_t slot, void** request) {
      const intptr_t preset = hint ? NCCL_NET_OPTIONAL_RECV_COMPLETION : 0;
      *request = reinterpret_cast<void*>(preset);
      return TryReceive(in.data() + slot * kFlagSlotBytes, kFlagSlotBytes, handle, request);
    };
    traffic.test = [this](void* request, int* done) { return net().Test(request, done, nullptr); };
    EXPECT_EQ("", RunFlagTraffic(traffic));
    EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, handle));
  }
};

TEST_P(FlagsTest, NoLineShowsItsFlagBeforeItsData) { Run(true); }

// The user has forbidden NCCL the hint: then every single receive is copied with the same care.
TEST_P(FlagsTest, NorWithoutTheHint) {
  Start({{"NCCL_NET_OPTIONAL_RECV_COMPLETION", "0"}});
  Run(false);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, FlagsTest, ::testing::ValuesIn(StagingModes()), ModeName);

}  // namespace
}  // namespace tcpx
