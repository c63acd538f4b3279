// libnccl-profiler-tcpx.so as NCCL uses it: looked up by name, with another profiler chained to it.
#include <stdlib.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "tests/support/small_disk.h"
#include "tests/unit/profiler/fake_profiler.h"
#include "tests/unit/profiler/profiler_fixture.h"

namespace tcpx {
namespace {

constexpr char kFakeV4[] = "tests/unit/profiler/libfake_v4.so";
constexpr char kFakeV5[] = "tests/unit/profiler/libfake_v5.so";

template <typename Table, typename Descriptor>
void RunV5AndUp(const char* symbol, void** context, int* mask) {
  Library library(kLibrary);
  const auto* table = library.Find<Table>(symbol);
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->init(context, 42, mask, "world", 1, 2, 1, &Log), ncclSuccess);
  OneCollective(*table, *context, Descriptor());
  ASSERT_EQ(table->finalize(*context), ncclSuccess);
}

// A parent is the other profiler's own handle of it.
void ExpectChained(const FakeProfilerLog& log) {
  EXPECT_EQ(log.wrong, 0);
  ASSERT_EQ(log.started, 3);
  EXPECT_EQ(log.stopped, 3);
  EXPECT_EQ(log.noted, 1);
  EXPECT_EQ(log.finalized, 1);
  EXPECT_EQ(log.seen[0].parent, nullptr);
  EXPECT_STREQ(log.seen[1].function, "AllGather");
  EXPECT_EQ(log.seen[1].parent, log.seen[0].handle);
  EXPECT_EQ(log.seen[2].parent, log.seen[1].handle);
}

TEST_F(ProfilerTest, V4WritesATimeline) {
  Library library(kLibrary);
  const auto* table = library.Find<ncclProfiler_v4_t>("ncclProfiler_v4");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->init(&context_, &mask_, "world", 42, 1, 2, 1, &Log), ncclSuccess);
  EXPECT_EQ(mask_ & ncclProfileProxyStep, ncclProfileProxyStep);
  EXPECT_EQ(mask_ & ncclProfileProxyCtrl, 0);
  OneCollective(*table, context_, ncclProfilerEventDescr_v4_t());
  ASSERT_EQ(table->finalize(context_), ncclSuccess);
  const std::string trace = Trace();
  EXPECT_TRUE(absl::StrContains(trace, "AllGather")) << trace;
  EXPECT_TRUE(absl::StrContains(trace, "rank 1")) << trace;
  EXPECT_EQ(Warnings(), "");
}

TEST_F(ProfilerTest, V5And6WriteATimeline) {
  RunV5AndUp<ncclProfiler_v5_t, ncclProfilerEventDescr_v5_t>("ncclProfiler_v5", &context_, &mask_);
  EXPECT_TRUE(absl::StrContains(Trace(), "AllGather"));
  RunV5AndUp<ncclProfiler_v6_t, ncclProfilerEventDescr_v6_t>("ncclProfiler_v6", &context_, &mask_);
  EXPECT_TRUE(absl::StrContains(Trace(), "AllGather"));
}

TEST_F(ProfilerTest, TheOtherProfilerGetsEverythingByItsOwnVersion) {
  setenv("TCPX_PROFILER_CHAIN", kFakeV5, 1);
  Library fake(kFakeV5);
  RunV5AndUp<ncclProfiler_v6_t, ncclProfilerEventDescr_v6_t>("ncclProfiler_v6", &context_, &mask_);
  ExpectChained(*fake.Find<FakeProfilerLog*()>("fake_profiler_log")());
  EXPECT_TRUE(absl::StrContains(Trace(), "AllGather"));
  EXPECT_EQ(Warnings(), "");
}

TEST_F(ProfilerTest, AnOlderOneGetsWhatNcclWouldMakeOfIt) {
  setenv("TCPX_PROFILER_CHAIN", kFakeV4, 1);
  unsetenv("TCPX_TRACE_DIR");
  Library fake(kFakeV4);
  RunV5AndUp<ncclProfiler_v6_t, ncclProfilerEventDescr_v6_t>("ncclProfiler_v6", &context_, &mask_);
  ExpectChained(*fake.Find<FakeProfilerLog*()>("fake_profiler_log")());
  EXPECT_EQ(Trace(), "");
}

TEST_F(ProfilerTest, TheTraceIsWholeBeneathWhatOnlyTheOtherProfilerWants) {
  setenv("TCPX_PROFILER_CHAIN", kFakeV5, 1);
  setenv("TCPX_TRACE_EVENTS", "proxy", 1);
  Library fake(kFakeV5);
  RunV5AndUp<ncclProfiler_v5_t, ncclProfilerEventDescr_v5_t>("ncclProfiler_v5", &context_, &mask_);
  ExpectChained(*fake.Find<FakeProfilerLog*()>("fake_profiler_log")());
  EXPECT_TRUE(absl::StrContains(Trace(), "receive operation")) << Trace();
  EXPECT_FALSE(absl::StrContains(Trace(), "AllGather")) << Trace();
}

TEST_F(ProfilerTest, AnotherProfilerThatDoesNotStartIsLeftAlone) {
  setenv("TCPX_PROFILER_CHAIN", kFakeV5, 1);
  setenv("TCPX_TRACE_EVENTS", "net", 1);
  Library fake(kFakeV5);
  FakeProfilerLog& log = *fake.Find<FakeProfilerLog*()>("fake_profiler_log")();
  log.init_result = ncclInternalError;
  RunV5AndUp<ncclProfiler_v5_t, ncclProfilerEventDescr_v5_t>("ncclProfiler_v5", &context_, &mask_);
  EXPECT_EQ(mask_, ncclProfileNetPlugin);
  EXPECT_EQ(log.started + log.stopped + log.noted + log.finalized, 0);
  EXPECT_TRUE(absl::StrContains(Warnings(), "failed to start")) << Warnings();
}

TEST_F(ProfilerTest, MasksAreJoined) {
  setenv("TCPX_PROFILER_CHAIN", kFakeV5, 1);
  setenv("TCPX_TRACE_EVENTS", "control", 1);
  RunV5AndUp<ncclProfiler_v6_t, ncclProfilerEventDescr_v6_t>("ncclProfiler_v6", &context_, &mask_);
  EXPECT_EQ(mask_, ncclProfileProxyCtrl | ncclProfileGroup | ncclProfileColl | ncclProfileProxyOp);
}

TEST_F(ProfilerTest, WhatCannotBeLoadedIsSaidAndTheJobRuns) {
  setenv("TCPX_PROFILER_CHAIN", "/no/such/library.so", 1);
  setenv("TCPX_TRACE_DIR", "/no/such/folder", 1);
  RunV5AndUp<ncclProfiler_v5_t, ncclProfilerEventDescr_v5_t>("ncclProfiler_v5", &context_, &mask_);
  EXPECT_EQ(mask_, 0);
  EXPECT_TRUE(absl::StrContains(Warnings(), "/no/such/library.so")) << Warnings();
  EXPECT_TRUE(absl::StrContains(Warnings(), "/no/such/folder")) << Warnings();
}

// One line, whether the disk is full from the first byte on or gets so, and the other profiler gets everything.
TEST_F(ProfilerTest, AFullDiskEndsTheTraceAndNothingElse) {
  constexpr int kMany = 2000;
  setenv("TCPX_PROFILER_CHAIN", kFakeV5, 1);
  Library fake(kFakeV5);
  FakeProfilerLog& log = *fake.Find<FakeProfilerLog*()>("fake_profiler_log")();
  const bool ran = OnSmallDisk(folder_, [&] {
    for (const bool full_at_once : {false, true}) {
      log = FakeProfilerLog();
      Warnings().clear();
      if (full_at_once) FillDisk(folder_);
      Library library(kLibrary);
      const auto* table = library.Find<ncclProfiler_v5_t>("ncclProfiler_v5");
      ASSERT_EQ(table->init(&context_, 42, &mask_, "world", 1, 2, 1, &Log), ncclSuccess);
      for (int i = 0; i < kMany; ++i) OneCollective(*table, context_, ncclProfilerEventDescr_v5_t());
      ASSERT_EQ(table->finalize(context_), ncclSuccess);
      EXPECT_EQ(log.started, 3 * kMany);
      EXPECT_EQ(log.stopped, 3 * kMany);
      EXPECT_EQ(log.wrong, 0);
      const std::string warnings = Warnings();
      EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 1) << warnings;
      EXPECT_TRUE(absl::StrContains(warnings, "No space left")) << warnings;
      EXPECT_TRUE(absl::StrContains(warnings, folder_)) << warnings;
    }
  });
  if (!ran) GTEST_SKIP() << kNoSmallDisk;
}

TEST_F(ProfilerTest, AWrongKindOfEventIsNamed) {
  setenv("TCPX_TRACE_EVENTS", "coll,nett", 1);
  RunV5AndUp<ncclProfiler_v5_t, ncclProfilerEventDescr_v5_t>("ncclProfiler_v5", &context_, &mask_);
  EXPECT_TRUE(absl::StrContains(Warnings(), "nett")) << Warnings();
}

}  // namespace
}  // namespace tcpx
