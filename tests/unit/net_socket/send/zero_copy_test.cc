// When a lane sends without a copy, and when a chunk so sent is over.
#include "net_socket/send/zero_copy.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "net_socket/nic/path_profile.h"
#include "net_socket/seal/record.h"

namespace tcpx {
namespace {

constexpr size_t kLarge = kZeroCopyBytesMin;

// What a path makes of the parameter.
Switch Towards(Switch parameter, bool same_host) {
  Options options;
  options.zerocopy = parameter;
  PathFacts facts;
  facts.same_host = same_host;
  return MakePathProfile(options, facts).zero_copy;
}

TEST(ZeroCopyPolicyTest, TriesLargeChunksTowardsAnotherHost) {
  ZeroCopyPolicy policy(Towards(Switch::kAuto, false));
  EXPECT_TRUE(policy.Wants(kLarge));
  EXPECT_FALSE(policy.Wants(kLarge - 1));
}

TEST(ZeroCopyPolicyTest, LeavesTheSameHostAlone) {
  EXPECT_FALSE(ZeroCopyPolicy(Towards(Switch::kAuto, true)).Wants(kLarge));
  EXPECT_FALSE(ZeroCopyPolicy(Towards(Switch::kOff, false)).Wants(kLarge));
  EXPECT_TRUE(ZeroCopyPolicy(Towards(Switch::kOn, true)).Wants(kLarge));
}

TEST(ZeroCopyPolicyTest, GivesUpWhereTheKernelCopies) {
  ZeroCopyPolicy policy(Towards(Switch::kAuto, false));
  for (int i = 1; i < ZeroCopyPolicy::kCopiedMax; ++i) policy.Notified(true);
  EXPECT_TRUE(policy.Wants(kLarge));
  policy.Notified(true);
  EXPECT_FALSE(policy.Wants(kLarge));
  policy.Notified(false);
  EXPECT_FALSE(policy.Wants(kLarge)) << "given up for good";
}

TEST(ZeroCopyPolicyTest, AFewCopiesAreForgiven) {
  ZeroCopyPolicy policy(Towards(Switch::kAuto, false));
  for (int i = 0; i < 100; ++i) policy.Notified(i % ZeroCopyPolicy::kCopiedMax != 0);
  EXPECT_TRUE(policy.Wants(kLarge));
}

TEST(ZeroCopyPolicyTest, ForcedIsGivenUpOnlyWhenRefused) {
  ZeroCopyPolicy policy(Towards(Switch::kOn, true));
  for (int i = 0; i < 100; ++i) policy.Notified(true);
  EXPECT_TRUE(policy.Wants(kLarge));
  policy.Refused();
  EXPECT_FALSE(policy.Wants(kLarge));
}

class PinnedChunksTest : public ::testing::Test {
 protected:
  PinnedChunksTest() { request_.left.store(Units(100)); }

  PinnedChunk* Take() {
    PinnedChunk* pinned = chunks_.Take();
    if (pinned != nullptr) pinned->chunk = {&request_, 0, 100};
    return pinned;
  }

  SendRequest request_;
  PinnedChunks chunks_;
};

TEST_F(PinnedChunksTest, DoneOnlyWhenTakenAndReleased) {
  for (bool release_first : {false, true}) {
    request_.left.store(Units(100));
    PinnedChunk* pinned = Take();
    ASSERT_NE(nullptr, pinned);
    (release_first ? pinned->released : pinned->taken) = true;
    chunks_.Settle(pinned);
    EXPECT_FALSE(request_.done());
    (release_first ? pinned->taken : pinned->released) = true;
    chunks_.Settle(pinned);
    EXPECT_TRUE(request_.done());
  }
}

TEST_F(PinnedChunksTest, BoundedAndUsedAgain) {
  std::vector<PinnedChunk*> taken;
  while (PinnedChunk* pinned = Take()) taken.push_back(pinned);
  EXPECT_EQ(PinnedChunks::kMax, taken.size());
  request_.left.store(Units(100 * taken.size()));
  PinnedChunk* first = taken.front();
  first->taken = first->released = true;
  chunks_.Settle(first);
  EXPECT_EQ(first, Take());
  EXPECT_FALSE(first->taken || first->released);
  EXPECT_EQ(nullptr, Take());
}

// What is sealed is lent for the time that the kernel needs it, and no longer.
TEST_F(PinnedChunksTest, GivesTheRoomOfWhatIsSealedBack) {
  const auto buffers = std::make_shared<SealBuffers>();
  PinnedChunk* const pinned = Take();
  pinned->sealed = Lend(buffers);
  char* const room = pinned->sealed.get();
  ASSERT_NE(nullptr, room);
  pinned->taken = true;
  chunks_.Settle(pinned);
  EXPECT_EQ(room, pinned->sealed.get());
  pinned->released = true;
  chunks_.Settle(pinned);
  EXPECT_EQ(nullptr, pinned->sealed.get());
  EXPECT_EQ(room, Lend(buffers).get());
  EXPECT_EQ(1, buffers.use_count());
}

TEST_F(PinnedChunksTest, InFlightWhileTheKernelHoldsOne) {
  PinnedChunk* pinned = Take();
  EXPECT_FALSE(chunks_.InFlight());
  pinned->op.in_flight = true;
  EXPECT_TRUE(chunks_.InFlight());
  EXPECT_EQ(pinned, PinnedChunk::Of(&pinned->op));
}

}  // namespace
}  // namespace tcpx
