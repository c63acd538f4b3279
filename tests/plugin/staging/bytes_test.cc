// Staged messages, byte for byte: GPU memory on one end or both, in every mode, sizes from nothing to 16 MiB (64 MiB
// with TCPX_TEST_LONG=1), offsets of no alignment, and no other byte written. The device memory of the stand-in driver
// can't be touched by the host, so whatever did not go through a copy ends the test.
#include <algorithm>
#include <deque>

#include "tests/plugin/staging/staging_fixture.h"
#include "tests/support/pattern.h"

namespace tcpx {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;

struct Transfer {
  size_t bytes;
  bool from_gpu;
  bool to_gpu;
  size_t from_offset;
  size_t to_offset;
  std::unique_ptr<Buffer> from, to;
  void *from_handle = nullptr, *to_handle = nullptr, *send = nullptr, *receive = nullptr;
};

class BytesTest : public StagingTest {
 protected:
  void Prepare(uint64_t number, Transfer* transfer) {
    transfer->from =
        std::make_unique<Buffer>(lab_.get(), transfer->from_gpu, transfer->from_offset + transfer->bytes + 1);
    transfer->to = std::make_unique<Buffer>(lab_.get(), transfer->to_gpu, transfer->to_offset + transfer->bytes + 64);
    transfer->from->Write(transfer->from_offset, pattern_->Bytes(number), transfer->bytes);
    transfer->from_handle = Register(pair_.send, transfer->from.get());
    transfer->to_handle = Register(pair_.receive, transfer->to.get());
  }

  void Check(uint64_t number, Transfer* transfer) {
    const std::vector<char> got = transfer->to->Read();
    EXPECT_EQ("", pattern_->Check(number, got.data() + transfer->to_offset, transfer->bytes)) << "message " << number;
    const auto untouched = [](char c) { return c == Buffer::kFill; };
    EXPECT_TRUE(std::all_of(got.begin(), got.begin() + static_cast<long>(transfer->to_offset), untouched));
    EXPECT_TRUE(std::all_of(got.end() - 64, got.end(), untouched));
    EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.send, transfer->from_handle));
    EXPECT_EQ(ncclSuccess, net().DeregMr(pair_.receive, transfer->to_handle));
  }

  // True when the oldest of `open` was done.
  bool TestOldest(std::deque<Transfer*>* open, void* Transfer::*request) {
    if (open->empty()) return false;
    int done = 0, size = -1;
    EXPECT_EQ(ncclSuccess, net().Test(open->front()->*request, &done, &size)) << LogText();
    if (done == 0) return false;
    EXPECT_EQ(static_cast<int>(open->front()->bytes), size);
    open->pop_front();
    return true;
  }

  void Run(std::vector<Transfer>* transfers, size_t window) {
    size_t bytes_max = 0;
    for (const Transfer& transfer : *transfers) bytes_max = std::max(bytes_max, transfer.bytes);
    pattern_ = std::make_unique<Pattern>(TestSeed(), bytes_max);
    for (size_t i = 0; i < transfers->size(); ++i) Prepare(i, &(*transfers)[i]);
    std::deque<Transfer*> sends, receives;
    size_t sent = 0, posted = 0;
    Deadline deadline;
    while ((sent < transfers->size() || !sends.empty() || !receives.empty()) && !HasFailure()) {
      bool moved = false;
      if (sent < transfers->size() && sends.size() < window) {
        Transfer* const next = &(*transfers)[sent];
        ASSERT_EQ(ncclSuccess,
                  TrySend(next->from->data() + next->from_offset, next->bytes, next->from_handle, &next->send));
        if (next->send != nullptr) sends.push_back(next), ++sent, moved = true;
      }
      if (posted < transfers->size() && receives.size() < window) {
        Transfer* const next = &(*transfers)[posted];
        ASSERT_EQ(ncclSuccess,
                  TryReceive(next->to->data() + next->to_offset, next->bytes, next->to_handle, &next->receive));
        if (next->receive != nullptr) receives.push_back(next), ++posted, moved = true;
      }
      moved |= TestOldest(&sends, &Transfer::send);
      moved |= TestOldest(&receives, &Transfer::receive);
      if (moved) deadline.Restart();
      ASSERT_TRUE(moved || deadline.Yield()) << sent << " sent, " << posted << " posted; " << LogText();
    }
    for (size_t i = 0; i < transfers->size() && !HasFailure(); ++i) Check(i, &(*transfers)[i]);
  }

  std::unique_ptr<Pattern> pattern_;
};

std::vector<Transfer> Transfers(uint64_t seed, const std::vector<size_t>& sizes, size_t offset_max) {
  Rng rng(seed);
  std::vector<Transfer> transfers;
  for (size_t bytes : sizes) {
    for (int kinds = 0; kinds < 4; ++kinds) {
      transfers.push_back(
          {bytes, (kinds & 1) != 0, (kinds & 2) != 0, rng.Between(0, offset_max), rng.Between(0, offset_max), {}, {}});
    }
  }
  for (size_t i = transfers.size(); i > 1; --i) std::swap(transfers[i - 1], transfers[rng.Between(0, i - 1)]);
  return transfers;
}

std::vector<size_t> Sizes() {
  std::vector<size_t> sizes = {0,
                               1,
                               7,
                               8,
                               100,
                               127,
                               128,
                               129,
                               2048,
                               2049,
                               4096,
                               64 * kKiB,
                               65537,
                               256 * kKiB - 8,
                               614400,
                               kMiB + 3,
                               5 * kMiB + 13};
  if (TimeScale() > 1) sizes.resize(sizes.size() - 2);
  return sizes;
}

TEST_P(BytesTest, EverySizeAtAnyOffset) {
  std::vector<Transfer> transfers = Transfers(TestSeed(), Sizes(), 300);
  Run(&transfers, 8);
}

// Receives are announced by default; without credits sends go ahead of them.
TEST_P(BytesTest, EagerSendsAndLateCopies) {
  Start({{"TCPX_MAX_RECVS", "1"}});
  if (lab_->is_fake()) lab_->fake().delays(TestSeed(), 300);
  std::vector<Transfer> transfers = Transfers(TestSeed() + 1, Sizes(), 300);
  Run(&transfers, 8);
}

TEST_P(BytesTest, LargeOnes) {
  Start({{"TCPX_TEST_GPU_SLOT_BYTES", "256K"}, {"TCPX_GPU_POOL_BYTES", "4M"}});
  // More than the pool in any case.
  const size_t bytes = LongRun() ? 64 * kMiB : TimeScale() > 1 ? 8 * kMiB : 16 * kMiB;
  std::vector<Transfer> transfers;
  transfers.push_back({bytes, true, true, 1, 3, {}, {}});
  transfers.push_back({bytes, false, true, 0, 0, {}, {}});
  transfers.push_back({bytes, true, false, 5, 0, {}, {}});
  transfers.push_back({bytes, false, false, 7, 2, {}, {}});
  Run(&transfers, 4);
}

// With one shared slot and many connections each still has its own, and what is pinned stays within the bounds.
TEST_P(BytesTest, ManyConnectionsShareAPool) {
  Start({{"TCPX_TEST_GPU_SLOT_BYTES", "1M"}});
  constexpr int kPairs = 6;
  std::vector<Ends> pairs = {pair_};
  while (pairs.size() < kPairs) {
    auto pair = plugin_->Connect();
    ASSERT_TRUE(pair.ok()) << pair.status();
    pairs.push_back(*pair);
  }
  const std::vector<char> text(3 * kMiB, 'x');
  std::vector<std::unique_ptr<Buffer>> from, to;
  std::vector<void*> handles, sends(kPairs), receives(kPairs);
  for (const Ends& pair : pairs) {
    from.push_back(std::make_unique<Buffer>(lab_.get(), true, text.size()));
    to.push_back(std::make_unique<Buffer>(lab_.get(), true, text.size()));
    from.back()->Write(0, text.data(), text.size());
    handles.push_back(Register(pair.send, from.back().get()));
    handles.push_back(Register(pair.receive, to.back().get()));
  }
  Deadline deadline;
  int open = 2 * kPairs;
  while (open > 0 && !HasFailure()) {
    for (size_t i = 0; i < kPairs; ++i) {
      pair_ = pairs[i];
      void* const posted = reinterpret_cast<void*>(1);
      if (receives[i] == nullptr) {
        ASSERT_EQ(ncclSuccess, TryReceive(to[i]->data(), text.size(), handles[2 * i + 1], &receives[i]));
      }
      if (sends[i] == nullptr) {
        ASSERT_EQ(ncclSuccess, TrySend(from[i]->data(), text.size(), handles[2 * i], &sends[i]));
      }
      for (void** request : {&sends[i], &receives[i]}) {
        int done = 0, size = 0;
        if (*request == nullptr || *request == posted) continue;
        ASSERT_EQ(ncclSuccess, net().Test(*request, &done, &size)) << LogText();
        if (done != 0) *request = posted, --open, deadline.Restart();
      }
    }
    ASSERT_TRUE(deadline.Yield()) << open << " still open";
  }
  for (const auto& buffer : to) EXPECT_EQ(text, buffer->Read());
  if (lab_->is_fake()) {
    EXPECT_EQ(2 * (1 + kPairs) * kMiB, lab_->counts().pinned_bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(EveryMode, BytesTest, ::testing::ValuesIn(StagingModes()), ModeName);

}  // namespace
}  // namespace tcpx
