// In which order what a peer sends is seen, and what of it is refused.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/region_table.h"
#include "net_socket/rma/rma_receiver.h"
#include "tests/unit/net_socket/rma/fake_net.h"

namespace tcpx {
namespace {

constexpr uint64_t kWindowBytes = 1 << 20;

class RmaReceiverTest : public testing::Test, public RmaReceiver::Owner {
 protected:
  RmaReceiverTest() : window_(kWindowBytes + 2 * kGuard, '.') {
    table_.Add(window_.data() + kGuard, kWindowBytes, MemoryType::kHost, RmaUse::kWindow);
    table_.Add(signals_, sizeof(signals_), MemoryType::kHost, RmaUse::kOther);
    EXPECT_TRUE(Progress().ok());
    RmaRecord hello;
    hello.kind = RmaKind::kHello;
    hello.token = 1;
    hello.bytes = 2;
    EXPECT_TRUE(Send(Bytes(hello)).ok());
  }

  absl::Status Progress() {
    bool moved = false;
    return receiver_.Progress(&moved);
  }
  // As the batch that is posted last.
  absl::Status Send(const std::string& batch) {
    net_.Deliver(net_.posts.size() - 1, batch);
    return Progress();
  }
  static std::string Bytes(const RmaRecord& record, const std::string& payload = "") {
    return RecordBytes(record, payload);
  }
  static RmaRecord Put(uint64_t offset, uint64_t bytes, bool follows = false) {
    RmaRecord put;
    put.offset = offset;
    put.bytes = bytes;
    put.follows = follows;
    return put;
  }
  static RmaRecord Signal(RmaRecord put, uint64_t word, uint64_t add, bool strong) {
    put.has_signal = true;
    put.strong = strong;
    put.signal_region = 1;
    put.signal_offset = 8 * word;
    put.signal_add = add;
    return put;
  }
  char* at(uint64_t offset) { return window_.data() + kGuard + offset; }
  // Nothing was written but what is within the window.
  bool GuardsStand() const {
    return window_.substr(0, kGuard) == std::string(kGuard, '.') &&
           window_.substr(kGuard + kWindowBytes) == std::string(kGuard, '.');
  }

  static constexpr size_t kGuard = 4096;
  FakeNet net_;
  Comm comm_;
  RmaRegionTable table_;
  std::string window_;
  alignas(8) uint64_t signals_[4] = {};
  RmaReceiver receiver_{&net_, &comm_, this};

 private:
  const RmaRegionTable& regions() const override { return table_; }
  absl::Status Greeted(RmaReceiver*, const RmaRecord&) override { return absl::OkStatus(); }
  absl::Status Asked(uint32_t, const RmaRecord&) override { return absl::OkStatus(); }
  RmaReceiver::Wanted* Find(uint32_t, const RmaRecord&) override { return nullptr; }
  void Answered(uint64_t) override {}
  void PeerClosed(uint32_t, bool) override {}
};

TEST_F(RmaReceiverTest, AShortPutIsThereWithItsSignal) {
  EXPECT_TRUE(Send(Bytes(Signal(Put(5, 3), 0, 7, true), "abc")).ok());
  EXPECT_EQ(std::string(at(4), 5), ".abc.");
  EXPECT_EQ(signals_[0], 7u);
  EXPECT_TRUE(Progress().ok());
  EXPECT_EQ(signals_[0], 7u) << "once";
}

TEST_F(RmaReceiverTest, AStrongSignalWaitsForAllBeforeItAndAWeakOneForItsOwn) {
  const size_t batch = net_.posts.size();
  RmaRecord other = Signal(Put(0, 0), 3, 1, true);
  other.context = 9;
  EXPECT_TRUE(Send(Bytes(Put(0, 100, true)) + Bytes(Signal(Put(200, 100, true), 0, 1, true)) +
                   Bytes(Signal(Put(400, 1), 1, 1, false), "w") + Bytes(Signal(Put(0, 0), 2, 1, false)) + Bytes(other))
                  .ok());
  EXPECT_TRUE(Progress().ok());
  ASSERT_EQ(net_.posts.size(), batch + 3) << "two payloads and the batch to come";
  EXPECT_EQ(signals_[0], 0u);
  EXPECT_EQ(signals_[1], 1u) << "weak, its own payload is there";
  EXPECT_EQ(signals_[2], 0u) << "a signal alone counts as strong";
  EXPECT_EQ(signals_[3], 1u) << "of another context";
  net_.Deliver(batch + 1, std::string(100, 'b'));
  EXPECT_TRUE(Progress().ok());
  EXPECT_EQ(signals_[0], 0u) << "the first put is still under way";
  net_.Deliver(batch, std::string(100, 'a'));
  EXPECT_TRUE(Progress().ok());
  EXPECT_EQ(signals_[0], 1u);
  EXPECT_EQ(signals_[2], 1u);
  EXPECT_EQ(*at(0), 'a');
  EXPECT_EQ(*at(299), 'b');
}

TEST_F(RmaReceiverTest, IsIdleOnceNothingCameForAWhile) {
  const auto look = [this](int times) {
    for (int i = 0; i < times; ++i) EXPECT_TRUE(Progress().ok());
  };
  EXPECT_FALSE(receiver_.idle());
  look(100);
  EXPECT_TRUE(receiver_.idle());
  EXPECT_TRUE(Send(Bytes(Put(0, 100, true))).ok());
  EXPECT_FALSE(receiver_.idle());
  const size_t payload = net_.posts.size() - 2;
  look(100);
  EXPECT_FALSE(receiver_.idle()) << "bytes are on their way";
  net_.Deliver(payload, std::string(100, 'p'));
  look(1);
  EXPECT_FALSE(receiver_.idle()) << "they have just come";
  look(100);
  EXPECT_TRUE(receiver_.idle());
}

// Signals that wait for a payload which does not come: reading ends, and goes on with the payload.
TEST_F(RmaReceiverTest, HoldsABoundedNumberOfOperations) {
  constexpr uint64_t kArrivalsMax = 1024;
  EXPECT_TRUE(Send(Bytes(Put(0, 100, true))).ok());
  const size_t payload = net_.posts.size() - 2;
  const std::string signal = Bytes(Signal(Put(0, 0), 0, 1, true));
  std::string batch;
  while (batch.size() + signal.size() <= kRmaBatchBytes) batch += signal;
  const uint64_t in_batch = batch.size() / signal.size();
  size_t posts = 0;
  for (uint64_t sent = 0; posts != net_.posts.size() && sent < 100 * kArrivalsMax; sent += in_batch) {
    posts = net_.posts.size();
    EXPECT_TRUE(Send(batch).ok());
    EXPECT_LE(sent, kArrivalsMax);
  }
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Progress().ok());
  EXPECT_EQ(posts, net_.posts.size()) << "no other batch is asked for";
  EXPECT_EQ(signals_[0], 0u);
  net_.Deliver(payload, std::string(100, 'p'));
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(Progress().ok());
  EXPECT_GT(signals_[0], kArrivalsMax);
  EXPECT_GT(net_.posts.size(), posts);
}

TEST_F(RmaReceiverTest, RefusesEveryRangeThatIsNotWithinItsRegion) {
  const RmaRecord bad[] = {
      Put(kWindowBytes, 1),
      Put(kWindowBytes - 1, 2),
      Put(UINT64_MAX, 1),
      Put(UINT64_MAX - 1, 8),
      Put(0, kWindowBytes + 1, true),
      Put(8, UINT64_MAX - 4, true),
      Signal(Put(0, 0), 4, 1, true),
      Signal(Put(0, 0), UINT64_MAX / 8, 1, true),
  };
  for (const RmaRecord& record : bad) {
    RmaReceiver receiver(&net_, &comm_, this);
    bool moved = false;
    ASSERT_TRUE(receiver.Progress(&moved).ok());
    RmaRecord hello;
    hello.kind = RmaKind::kHello;
    std::string payload(record.follows ? 0 : record.bytes, 'x');
    net_.Deliver(net_.posts.size() - 1, Bytes(hello) + Bytes(record, payload));
    EXPECT_TRUE(absl::IsUnavailable(receiver.Progress(&moved))) << record.offset << " " << record.bytes;
  }
  EXPECT_TRUE(GuardsStand());
}

TEST_F(RmaReceiverTest, RefusesASignalThatIsNoWholeWord) {
  RmaRecord odd = Signal(Put(0, 0), 0, 1, true);
  odd.signal_offset = 4;
  EXPECT_FALSE(Send(Bytes(odd)).ok());
}

TEST_F(RmaReceiverTest, RefusesRecordsOutOfPlace) {
  RmaRecord hello;
  hello.kind = RmaKind::kHello;
  EXPECT_FALSE(Send(Bytes(hello)).ok()) << "a second hello";
}

// Its place would be checked by nobody.
TEST(RmaRecordTest, OnlyAPutHasASignal) {
  for (const RmaKind kind : {RmaKind::kHello, RmaKind::kPut, RmaKind::kGet, RmaKind::kGotten, RmaKind::kBye}) {
    RmaRecord record;
    record.kind = kind;
    record.has_signal = true;
    std::string bytes(record.Space(), '\0');
    WriteRmaRecord(record, nullptr, bytes.data());
    absl::string_view batch = bytes;
    absl::string_view payload;
    RmaRecord read;
    const char* const wrong = ReadRmaRecord(&batch, &read, &payload);
    EXPECT_EQ(kind == RmaKind::kPut, wrong == nullptr) << static_cast<int>(kind);
  }
}

TEST_F(RmaReceiverTest, RefusesAnAnswerThatNobodyAskedFor) {
  RmaRecord gotten;
  gotten.kind = RmaKind::kGotten;
  EXPECT_FALSE(Send(Bytes(gotten)).ok());
}

TEST_F(RmaReceiverTest, WhateverComesNothingOutsideTheRegionsIsWritten) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    std::string batch = Bytes(Put(random() % (2 * kWindowBytes), 16), std::string(16, 'x')) +
                        Bytes(Signal(Put(0, 0), random() % 8, 1, random() % 2 == 0));
    for (int changes = random() % 4; changes > 0; --changes)
      batch[random() % batch.size()] = static_cast<char>(random());
    batch.resize(random() % 4 == 0 ? random() % batch.size() : batch.size());
    RmaReceiver receiver(&net_, &comm_, this);
    bool moved = false;
    ASSERT_TRUE(receiver.Progress(&moved).ok());
    RmaRecord hello;
    hello.kind = RmaKind::kHello;
    net_.Deliver(net_.posts.size() - 1, Bytes(hello) + batch);
    receiver.Progress(&moved).IgnoreError();
    net_.posts.clear();
  }
  EXPECT_TRUE(GuardsStand());
}

}  // namespace
}  // namespace tcpx
