// In which orders NCCL ends contexts, regions and groups: nothing is lost that was put before, and nothing is touched
// that was given back.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "tests/plugin/rma/rma_lab.h"
#include "tests/support/guarded_pages.h"
#include "tests/support/plugin_log.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

constexpr size_t kBytes = 96 << 10;  // one put that travels in a batch, and one that does not, fit in
constexpr int kPuts = 32;

class RmaTeardownTest : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().ReasonToSkip();
    if (!missing.empty()) GTEST_SKIP() << missing;
    auto lab = RmaLab::Open(GetParam(), {.ranks = 2, .contexts = 2});
    ASSERT_TRUE(lab.ok()) << lab.status();
    lab_ = *std::move(lab);
    window_ = Must(lab_->Register(kBytes));
    signals_ = Must(lab_->Register(64, NCCL_NET_MR_FLAG_FORCE_SO));
  }
  // `bytes` from `local` of rank 0 to rank 1, with a signal.
  void* Put(void* local, size_t bytes, int context = 0) {
    RmaRange range;
    range.local = local;
    range.remote = window_->of(0);
    range.bytes = bytes;
    range.rank = 1;
    RmaSignal signal;
    signal.region = signals_->of(0);
    void* request = nullptr;
    const ncclResult_t result = lab_->rma().IputSignal(lab_->rank(0).contexts, context, range, signal, 0, &request);
    EXPECT_EQ(ncclSuccess, result) << LogText();
    return request;
  }
  absl::Status Signalled(uint64_t count) {
    return lab_->Until([&] { return signals_->Word(1, 0) == count; });
  }
  void Quiet() {
    EXPECT_EQ(0, WarningCount()) << LogText();
    EXPECT_FALSE(lab_->HasFailed(1));
  }

  std::unique_ptr<RmaLab> lab_;
  RmaMemory* window_ = nullptr;
  RmaMemory* signals_ = nullptr;
};

// ncclDevCommDestroy: the memory is gone before it is deregistered.
TEST_P(RmaTeardownTest, SourcesMayGoOnceTheContextsAreDestroyed) {
  GuardedPages inline_values(kBytes);
  void* const mhandle = Must(lab_->RegisterAt(0, inline_values.data(), kBytes, NCCL_NET_MR_FLAG_FORCE_SO));
  Must(lab_->RegisterAt(1, window_->at(1), kBytes, NCCL_NET_MR_FLAG_FORCE_SO));
  std::memset(inline_values.data(), 'v', kBytes);
  for (int i = 0; i < kPuts; ++i) Put(mhandle, i % 4 == 0 ? kBytes : 8, i % 2);
  ASSERT_EQ(ncclSuccess, lab_->rma().DestroyContext(lab_->rank(0).contexts));
  lab_->rank(0).contexts = nullptr;
  inline_values.Forbid();
  ASSERT_EQ(ncclSuccess, lab_->rma().DeregMrSym(lab_->rank(0).group, mhandle));
  EXPECT_EQ(absl::OkStatus(), Signalled(kPuts));
  EXPECT_EQ(std::string(kBytes, 'v'), std::string(window_->at(1), kBytes));
  Quiet();
}

TEST_P(RmaTeardownTest, ContextsComeAndGo) {
  for (uint64_t i = 1; i <= 3; ++i) {
    Must(lab_->Wait(0, Put(window_->of(0), kBytes)));
    Must(Signalled(i));
    RmaLab::Rank& rank = lab_->rank(0);
    ASSERT_EQ(ncclSuccess, lab_->rma().DestroyContext(rank.contexts));
    ASSERT_EQ(ncclSuccess, lab_->rma().CreateContext(rank.group, 2, NCCL_NET_TRAFFIC_CLASS_UNDEF, &rank.contexts));
  }
  Quiet();
}

TEST_P(RmaTeardownTest, RegionsComeAndGo) {
  for (uint64_t i = 1; i <= 3; ++i) {
    std::memset(window_->at(0), static_cast<int>('a' + i), kBytes);
    Must(lab_->Wait(0, Put(window_->of(0), kBytes)));
    Must(Signalled(i));
    EXPECT_EQ(std::string(kBytes, static_cast<char>('a' + i)), std::string(window_->at(1), kBytes));
    lab_->Deregister(*window_);
    window_ = Must(lab_->Register(kBytes));
  }
  Quiet();
}

// The signals of a last barrier are in flight when the group is closed.
TEST_P(RmaTeardownTest, WhatWasPutBeforeTheCloseArrives) {
  for (int i = 0; i < kPuts; ++i) Put(window_->of(0), i % 8 == 0 ? kBytes : 8);
  ASSERT_EQ(ncclSuccess, lab_->rma().DestroyContext(lab_->rank(0).contexts));
  lab_->rank(0).contexts = nullptr;
  lab_->Deregister(*window_, 0);
  Must(lab_->Close(0));
  EXPECT_EQ(absl::OkStatus(), Signalled(kPuts));
}

TEST_P(RmaTeardownTest, BothEndsAtOnce) {
  Must(lab_->Wait(0, Put(window_->of(0), kBytes)));
  Must(Signalled(1));
  lab_->Deregister(*window_);
  lab_->Deregister(*signals_);
  Quiet();
  EXPECT_EQ(absl::OkStatus(), lab_->CloseAll());
  EXPECT_EQ(0, WarningCount()) << LogText();
}

INSTANTIATE_TEST_SUITE_P(EveryMode, RmaTeardownTest, ::testing::ValuesIn(AllModes({1, 4})), ModeName);

// A process may end with everything open.
TEST(RmaExitTest, WithAGroupOpen) {
  EXPECT_EQ("", RunAlone([] {
              static RmaLab* const lab = Must(RmaLab::Open({.threads = 2, .lanes = 2}, {.ranks = 2})).release();
              Must(lab->Register(kBytes));
            }));
}

}  // namespace
}  // namespace tcpx
