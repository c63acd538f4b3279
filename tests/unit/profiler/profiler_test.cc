// libnccl-profiler-tcpx.so as NCCL uses it: looked up by name, with another profiler behind it.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "nccl/profiler_v4.h"
#include "nccl/profiler_v5.h"
#include "nccl/profiler_v6.h"
#include "tests/unit/profiler/fake_profiler.h"

namespace tcpx {
namespace {

constexpr char kLibrary[] = "profiler/libnccl-profiler-tcpx.so";
constexpr char kFakeV4[] = "tests/unit/profiler/libfake_v4.so";
constexpr char kFakeV5[] = "tests/unit/profiler/libfake_v5.so";

std::string g_warnings;

void Log(ncclDebugLogLevel level, unsigned long, const char*, int, const char* format, ...) {
  if (level != NCCL_LOG_WARN) return;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof(line), format, arguments);
  va_end(arguments);
  absl::StrAppend(&g_warnings, line, "\n");
}

// Opened for the length of a test.
class Library {
 public:
  explicit Library(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(library_, nullptr) << dlerror();
  }
  ~Library() { dlclose(library_); }
  template <typename Symbol>
  Symbol* Find(const char* name) {
    return reinterpret_cast<Symbol*>(dlsym(library_, name));
  }

 private:
  void* const library_;
};

class ProfilerTest : public testing::Test {
 protected:
  ProfilerTest() {
    std::string name = testing::TempDir() + "/profiler.XXXXXX";
    folder_ = mkdtemp(name.data());
    for (const char* variable : {"TCPX_TRACE_EVENTS", "TCPX_PROFILER_CHAIN", "TCPX_TRACE_SAMPLE"}) unsetenv(variable);
    setenv("TCPX_TRACE_DIR", folder_.c_str(), 1);
    g_warnings.clear();
  }
  std::string Trace() const {
    char host[256] = {};
    gethostname(host, sizeof(host) - 1);
    std::ostringstream text;
    text << std::ifstream(absl::StrCat(folder_, "/tcpx-trace.", host, ".", getpid(), ".json")).rdbuf();
    return text.str();
  }

  std::string folder_;
  void* context_ = nullptr;
  int mask_ = 0;
};

// A group's collective with one operation, by any version's table. Begun and ended by the caller.
template <typename Table, typename Descriptor>
void OneCollective(const Table& table, void* context, Descriptor event) {
  void *group = nullptr, *coll = nullptr, *operation = nullptr;
  event.type = ncclProfileGroup;
  ASSERT_EQ(table.startEvent(context, &group, &event), ncclSuccess);
  event = {};
  event.type = ncclProfileColl;
  event.parentObj = group;
  if constexpr (sizeof(event.type) == 8) event.coll.parentGroup = group;
  event.coll.func = "AllGather";
  ASSERT_EQ(table.startEvent(context, &coll, &event), ncclSuccess);
  ASSERT_EQ(table.stopEvent(coll), ncclSuccess);
  event = {};
  event.type = ncclProfileProxyOp;
  event.parentObj = coll;
  ASSERT_EQ(table.startEvent(context, &operation, &event), ncclSuccess);
  ASSERT_EQ(table.recordEventState(operation, ncclProfilerProxyOpInProgress_v4, nullptr), ncclSuccess);
  ASSERT_EQ(table.stopEvent(operation), ncclSuccess);
  ASSERT_EQ(table.stopEvent(group), ncclSuccess);
}

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
  EXPECT_EQ(g_warnings, "");
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
  EXPECT_EQ(g_warnings, "");
}

TEST_F(ProfilerTest, AnOlderOneGetsWhatNcclWouldMakeOfIt) {
  setenv("TCPX_PROFILER_CHAIN", kFakeV4, 1);
  unsetenv("TCPX_TRACE_DIR");
  Library fake(kFakeV4);
  RunV5AndUp<ncclProfiler_v6_t, ncclProfilerEventDescr_v6_t>("ncclProfiler_v6", &context_, &mask_);
  ExpectChained(*fake.Find<FakeProfilerLog*()>("fake_profiler_log")());
  EXPECT_EQ(Trace(), "");
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
  EXPECT_TRUE(absl::StrContains(g_warnings, "/no/such/library.so")) << g_warnings;
  EXPECT_TRUE(absl::StrContains(g_warnings, "/no/such/folder")) << g_warnings;
}

TEST_F(ProfilerTest, AWrongKindOfEventIsNamed) {
  setenv("TCPX_TRACE_EVENTS", "coll,nett", 1);
  RunV5AndUp<ncclProfiler_v5_t, ncclProfilerEventDescr_v5_t>("ncclProfiler_v5", &context_, &mask_);
  EXPECT_TRUE(absl::StrContains(g_warnings, "nett")) << g_warnings;
}

}  // namespace
}  // namespace tcpx
