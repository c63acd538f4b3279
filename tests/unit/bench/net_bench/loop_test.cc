#include "bench/net_bench/loop.h"

#include <string.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace tcpx {
namespace bench {
namespace {

constexpr size_t kBytes = 1000;

// A wire within the test: what one end sends the other receives, after a few looks.
struct Wire {
  std::deque<std::vector<uint8_t>> messages;
};

class FakeChannel : public Channel {
 public:
  FakeChannel(Wire* wire, bool sends) : wire_(wire), sends_(sends) {}

  Step Post(uint8_t* data, size_t bytes) override {
    if (++posts_ % 3 == 0) return Step::kAgain;  // As a plugin that can't right now.
    if (sends_) wire_->messages.emplace_back(data, data + bytes);
    posted_.push_back(data);
    outstanding_max = std::max(outstanding_max, posted_.size());
    return Step::kDone;
  }
  Step Test(size_t* bytes) override {
    if (fail_at == tested) return Step::kFailed;
    if (++looks_ % 2 == 0) return Step::kAgain;
    *bytes = kBytes;
    if (!sends_) {
      if (wire_->messages.empty()) return Step::kAgain;
      *bytes = wire_->messages.front().size() + extra_bytes;
      memcpy(posted_.front(), wire_->messages.front().data(), wire_->messages.front().size());
      if (corrupt_at == tested) posted_.front()[corrupt_offset] ^= 0x40;
      wire_->messages.pop_front();
    }
    posted_.pop_front();
    ++tested;
    return Step::kDone;
  }
  std::string Failure() const override { return "as told"; }

  int tested = 0;
  int fail_at = -1;
  int corrupt_at = -1;
  int corrupt_offset = 0;
  size_t extra_bytes = 0;
  size_t outstanding_max = 0;

 private:
  Wire* const wire_;
  const bool sends_;
  int posts_ = 0;
  int looks_ = 0;
  std::deque<uint8_t*> posted_;
};

class FakeLink : public Link {
 public:
  const std::vector<Channel*>& sends() const override { return sends_; }
  const std::vector<Channel*>& receives() const override { return receives_; }
  std::vector<Channel*> sends_;
  std::vector<Channel*> receives_;
};

// Both ends of one wire under one loop: what it sends it receives.
class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    SlotRing::Shape shape;
    shape.slots = 8;
    shape.bytes_max = kBytes;
    send_slots_ = *SlotRing::Create(shape);
    receive_slots_ = *SlotRing::Create(shape);
    link_.sends_ = {&send_};
    link_.receives_ = {&receive_};
    position_.Enter(Stage::kTransfer);
    order_.messages = 100;
    order_.bytes = kBytes;
    order_.check = true;
    order_.peer_rank = order_.rank;
  }
  absl::Status Run() { return Loop(order_, &link_, send_slots_.get(), receive_slots_.get(), &position_).Run(&result_); }

  Wire wire_;
  FakeChannel send_{&wire_, true};
  FakeChannel receive_{&wire_, false};
  FakeLink link_;
  std::unique_ptr<SlotRing> send_slots_;
  std::unique_ptr<SlotRing> receive_slots_;
  LoopOrder order_;
  LoopResult result_;
  Position position_;
};

TEST_F(LoopTest, MovesEveryMessageWithinTheWindow) {
  order_.window = 5;
  order_.stamp = true;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(send_.tested, 100);
  EXPECT_EQ(receive_.tested, 100);
  EXPECT_LE(send_.outstanding_max, 5u);
  EXPECT_LE(receive_.outstanding_max, 5u);
  EXPECT_EQ(result_.gaps_ns.size(), 100u);
}

TEST_F(LoopTest, OneIsendPerPassMovesThemToo) {
  order_.one_isend_per_pass = true;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(receive_.tested, 100);
}

TEST_F(LoopTest, PingHasOneMessageUnderWay) {
  order_.gate = Gate::kPing;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(send_.tested, 100);
  EXPECT_EQ(send_.outstanding_max, 1u);
}

TEST_F(LoopTest, NoWorkEndsAtOnce) {
  order_.messages = 0;
  ASSERT_TRUE(Run().ok());
  EXPECT_EQ(send_.tested, 0);
}

TEST_F(LoopTest, AWrongByteIsFoundWithItsPlace) {
  receive_.corrupt_at = 17;
  receive_.corrupt_offset = 123;
  const absl::Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("byte 123 of 1000"), std::string::npos) << status;
  EXPECT_NE(status.message().find("message 17"), std::string::npos) << status;
}

TEST_F(LoopTest, AByteAfterTheMessageIsFound) {
  receive_.corrupt_at = 3;
  receive_.corrupt_offset = kBytes;
  EXPECT_NE(Run().message().find("guard byte 0 after"), std::string::npos);
}

TEST_F(LoopTest, AByteBeforeTheMessageIsFound) {
  receive_.corrupt_at = 3;
  receive_.corrupt_offset = -1;
  EXPECT_NE(Run().message().find("guard byte 1 before"), std::string::npos);
}

TEST_F(LoopTest, AWrongSizeIsFoundWithoutCheckToo) {
  order_.check = false;
  receive_.extra_bytes = 1;
  EXPECT_NE(Run().message().find("reports 1001 bytes, 1000 were sent"), std::string::npos);
}

TEST_F(LoopTest, AFailureNamesWhatAndWhere) {
  send_.fail_at = 9;
  const absl::Status status = Run();
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find("test of an isend: as told"), std::string::npos) << status;
  EXPECT_NE(status.message().find("message 9"), std::string::npos) << status;
}

}  // namespace
}  // namespace bench
}  // namespace tcpx
