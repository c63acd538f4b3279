// deregMr and close while copies are under way: NCCL frees the memory as soon as deregMr has returned. Copies are slow
// here; none may touch the memory afterwards, and the stand-in driver ends the process where one touches freed memory.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/plugin/staging/staging_fixture.h"

namespace tcpx {
namespace {

constexpr size_t kBytes = 1 << 20;  // 16 slots
constexpr char kPoison = '\x77';

class LifetimeTest : public StagingTest {
 protected:
  void SetUp() override {
    StagingTest::SetUp();
    if (plugin_ == nullptr) return;
    if (!lab_->is_fake()) GTEST_SKIP() << "a real driver's copies can't be slowed down";
    from_ = std::make_unique<Buffer>(lab_.get(), true, kBytes);
    to_ = std::make_unique<Buffer>(lab_.get(), true, kBytes);
    from_handle_ = Register(pair_.send, from_.get());
    to_handle_ = Register(pair_.receive, to_.get());
  }

  // Until some copies were carried out, and many not.
  void GetUnderWay(uint64_t copies) {
    lab_->fake().delays(TestSeed(), 4000);
    uint64_t before = lab_->counts().copies;
    void *send = nullptr, *receive = nullptr;
    Deadline deadline;
    // Where this thread comes too late, all were carried out: the next message is then looked at.
    for (bool under_way = false; !under_way && deadline.Yield();) {
      int received = 0, sent = 0;
      if (receive == nullptr) {
        ASSERT_EQ(ncclSuccess, TryReceive(to_->data(), kBytes, to_handle_, &receive));
      } else {
        ASSERT_EQ(ncclSuccess, net().Test(receive, &received, nullptr));
      }
      if (send == nullptr) {
        ASSERT_EQ(ncclSuccess, TrySend(from_->data(), kBytes, from_handle_, &send));
      } else {
        ASSERT_EQ(ncclSuccess, net().Test(send, &sent, nullptr));
      }
      if (sent != 0) send = nullptr;
      if (received != 0) {
        receive = nullptr;
        before = lab_->counts().copies;
      }
      under_way = receive != nullptr && send != nullptr && lab_->counts().copies >= before + copies;
    }
    ASSERT_FALSE(deadline.Over());
  }

  // Longer than any copy takes.
  static void Wait() { usleep(50000); }

  std::unique_ptr<Buffer> from_, to_;
  void* from_handle_ = nullptr;
  void* to_handle_ = nullptr;
};

TEST_P(LifetimeTest, NoCopyLandsAfterDereg) {
  GetUnderWay(18);
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.receive, to_handle_));
  to_->Fill(kPoison);
  Wait();
  const std::vector<char> now = to_->Read();
  EXPECT_TRUE(std::all_of(now.begin(), now.end(), [](char c) { return c == kPoison; }));
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.send, from_handle_));
  const uint64_t copies = lab_->counts().copies;
  Wait();
  EXPECT_EQ(copies, lab_->counts().copies);
}

TEST_P(LifetimeTest, MemoryMayBeFreedAfterDereg) {
  GetUnderWay(3);
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.send, from_handle_));
  from_.reset();
  ASSERT_EQ(ncclSuccess, net().DeregMr(pair_.receive, to_handle_));
  to_.reset();
  Wait();
}

TEST_P(LifetimeTest, MemoryMayBeFreedAfterClose) {
  GetUnderWay(10);
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  from_.reset();
  to_.reset();
  Wait();
  EXPECT_TRUE(Warnings().empty()) << LogText();
}

// The sender may close as soon as its send is done, long before the last copy at the other end.
TEST_P(LifetimeTest, WhatWasSentBeforeACloseStillLands) {
  from_->Fill('c');
  void *send = nullptr, *receive = nullptr;
  int sent = 0, received = 0;
  Deadline deadline;
  lab_->fake().delays(TestSeed(), 20000);
  while (received == 0 && deadline.Yield()) {
    if (receive == nullptr) {
      ASSERT_EQ(ncclSuccess, TryReceive(to_->data(), kBytes / 4, to_handle_, &receive));
    } else {
      ASSERT_EQ(ncclSuccess, net().Test(receive, &received, nullptr)) << LogText();
    }
    if (send == nullptr) {
      ASSERT_EQ(ncclSuccess, TrySend(from_->data(), kBytes / 4, from_handle_, &send));
    } else if (sent == 0) {
      ASSERT_EQ(ncclSuccess, net().Test(send, &sent, nullptr)) << LogText();
      if (sent != 0) {
        ASSERT_TRUE(plugin_->Close({pair_.send, nullptr}).ok());
      }
    }
  }
  ASSERT_EQ(1, received);
  const std::vector<char> now = to_->Read();
  EXPECT_TRUE(std::all_of(now.begin(), now.begin() + kBytes / 4, [](char c) { return c == 'c'; }));
}

// A GPU that copies nothing costs a close a bounded time.
TEST_P(LifetimeTest, AStuckGpuDoesNotKeepACloseWaiting) {
  Start({{"TCPX_PEER_TIMEOUT", "1"}});
  const auto other = plugin_->Connect();  // With it the process's use of the GPU stays.
  ASSERT_TRUE(other.ok()) << other.status();
  from_handle_ = Register(pair_.send, from_.get());
  to_handle_ = Register(pair_.receive, to_.get());
  GetUnderWay(3);
  lab_->fake().hold(1);
  std::atomic<bool> closed{false};
  std::thread rescue([&] {
    const Deadline deadline(20);
    while (!closed && deadline.Yield()) {
    }
    EXPECT_TRUE(closed);
    lab_->fake().hold(0);
  });
  EXPECT_TRUE(plugin_->Close(pair_).ok());
  closed = true;
  rescue.join();
  EXPECT_GT(CountInLog(" were not carried out within 1.0 s (TCPX_PEER_TIMEOUT)"), 0) << LogText();
  const Deadline deadline;
  while (lab_->counts().waiting > 0) ASSERT_TRUE(deadline.Yield());
}

// What a connection that was torn down had borrowed serves the next one.
TEST_P(LifetimeTest, SlotsComeBack) {
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    GetUnderWay(12);
    EXPECT_TRUE(plugin_->Close(pair_).ok());
    auto pair = plugin_->Connect();
    ASSERT_TRUE(pair.ok()) << pair.status();
    pair_ = *pair;
    from_handle_ = Register(pair_.send, from_.get());
    to_handle_ = Register(pair_.receive, to_.get());
  }
  EXPECT_EQ(2 * ((1u << 20) + (64u << 10)), lab_->counts().pinned_bytes_max);
}

INSTANTIATE_TEST_SUITE_P(EveryMode, LifetimeTest, ::testing::ValuesIn(StagingModes()), ModeName);

}  // namespace
}  // namespace tcpx
