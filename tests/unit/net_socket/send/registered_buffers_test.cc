#include "net_socket/send/registered_buffers.h"

#include <gtest/gtest.h>

#include <set>

namespace tcpx {
namespace {

// Has room for two buffers.
class TwoBuffers final : public Engine {
 public:
  const char* name() const override { return "two buffers"; }
  void Submit(IoOp*) override {}
  void Cancel(IoOp*) override {}
  void Forget(int) override {}
  int Reap(Completion*, int, int64_t) override { return 0; }
  void Wake() override {}

  int RegisterBuffer(void*, size_t) override {
    ++asked;
    for (int buffer = 0; buffer < 2; ++buffer) {
      if (held.insert(buffer).second) return buffer;
    }
    return kNoBuffer;
  }
  void ReleaseBuffer(int buffer) override { EXPECT_EQ(1u, held.erase(buffer)); }

  std::set<int> held;
  int asked = 0;
};

class RegisteredBuffersTest : public ::testing::Test {
 protected:
  int Find(uint64_t id, size_t bytes = sizeof(memory_)) { return buffers_.Find(&engine_, {id, memory_, bytes}); }

  TwoBuffers engine_;
  RegisteredBuffers buffers_;
  char memory_[64];
};

TEST_F(RegisteredBuffersTest, ARegionIsRegisteredOnce) {
  EXPECT_EQ(0, Find(1));
  EXPECT_EQ(0, Find(1));
  EXPECT_EQ(1, Find(2));
  EXPECT_EQ(2, engine_.asked);
}

TEST_F(RegisteredBuffersTest, WhereThereIsNoRoomNobodyAsksAgain) {
  Find(1);
  Find(2);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(kNoBuffer, Find(3));
  EXPECT_EQ(3, engine_.asked);
}

TEST_F(RegisteredBuffersTest, HugeRegionsAreLeftAlone) {
  EXPECT_EQ(kNoBuffer, Find(1, RegisteredBuffers::kBytesMax + 1));
  EXPECT_EQ(0, engine_.asked);
  EXPECT_EQ(0, Find(2, RegisteredBuffers::kBytesMax));
}

TEST_F(RegisteredBuffersTest, ALaneThatNeverRegisteredIsNotKicked) {
  EXPECT_FALSE(buffers_.Forget(1));
  buffers_.Settle(&engine_);
}

TEST_F(RegisteredBuffersTest, TheForgottenIsReleasedWhenTheLaneSettles) {
  Find(1);
  Find(2);
  EXPECT_TRUE(buffers_.Forget(1));
  EXPECT_TRUE(buffers_.Forget(7)) << "of another lane";
  EXPECT_EQ((std::set<int>{0, 1}), engine_.held);
  buffers_.Settle(&engine_);
  EXPECT_EQ((std::set<int>{1}), engine_.held);
  EXPECT_EQ(1, Find(2));
  EXPECT_EQ(0, Find(3)) << "its place is free again";
}

TEST_F(RegisteredBuffersTest, ReleaseAllLeavesNothing) {
  Find(1);
  Find(2);
  Find(3);
  buffers_.ReleaseAll(&engine_);
  EXPECT_TRUE(engine_.held.empty());
}

}  // namespace
}  // namespace tcpx
