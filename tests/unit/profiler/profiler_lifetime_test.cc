// The profiler's trace at its ends: a forked child, exit without finalize, handles that come too late.
#include <sys/wait.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/support/lost_threads.h"
#include "tests/unit/profiler/profiler_fixture.h"

namespace tcpx {
namespace {

using Table = ncclProfiler_v5_t;
using Descriptor = ncclProfilerEventDescr_v5_t;

constexpr unsigned kHungSeconds = 120;

// An array with an event in each line, from its beginning to its one end.
void ExpectWhole(const std::string& trace) {
  ASSERT_TRUE(absl::StartsWith(trace, "[\n{")) << trace;
  ASSERT_TRUE(absl::EndsWith(trace, "}\n]\n")) << trace;
  const std::vector<std::string> lines = absl::StrSplit(trace.substr(2, trace.size() - 5), '\n');
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(absl::StartsWith(lines[i], "{")) << lines[i];
    EXPECT_TRUE(absl::EndsWith(lines[i], i + 1 < lines.size() ? "}," : "}")) << lines[i];
  }
}

size_t Count(const std::string& text, const std::string& part) {
  return std::vector<std::string>(absl::StrSplit(text, part)).size() - 1;
}

// The child's exit status where it exited, else minus the signal. It calls exit() with what `run` returns.
int StatusOfChild(const std::function<int()>& run, pid_t* pid) {
  fflush(nullptr);
  *pid = fork();
  if (*pid == 0) {
    alarm(kHungSeconds);
    exit(run());
  }
  int status = 0;
  EXPECT_EQ(waitpid(*pid, &status, 0), *pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void* StartOperation(const Table& table, void* context, int peer = 0) {
  Descriptor event = {};
  event.type = ncclProfileProxyOp;
  event.proxyOp.peer = peer;
  void* handle = nullptr;
  EXPECT_EQ(table.startEvent(context, &handle, &event), ncclSuccess);
  return handle;
}

// What a child does with what its parent began, and with a communicator of its own.
int UseInChild(const Table& table, void* context, void* handle) {
  ThreadsAreLost();
  if (StartOperation(table, context) != nullptr) return 1;
  if (table.stopEvent(handle) != ncclSuccess) return 2;
  if (table.finalize(context) != ncclSuccess) return 3;
  int mask = -1;
  if (table.init(&context, 43, &mask, "child", 1, 2, 1, nullptr) != ncclSuccess || mask != 0) return 4;
  if (StartOperation(table, context) != nullptr) return 5;
  return table.finalize(context) == ncclSuccess ? 0 : 6;
}

std::atomic<int> g_seen{0};

void AwaitMoreTraffic() {
  for (const int before = g_seen; g_seen < before + 1000;) std::this_thread::yield();
}

// Never returns.
int ExitUnderTraffic() {
  // Runs after the destructors of the library's objects, if there are any.
  atexit(&AwaitMoreTraffic);
  // Kept open, as NCCL has it.
  const auto* table = reinterpret_cast<Table*>(dlsym(dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL), "ncclProfiler_v5"));
  static void* context = nullptr;
  static int mask = 0;
  if (table->init(&context, 42, &mask, "world", 1, 2, 1, nullptr) != ncclSuccess) return 1;
  for (int i = 0; i < 3; ++i) {
    std::thread([table] {
      for (;; ++g_seen) table->stopEvent(StartOperation(*table, context));
    }).detach();
  }
  AwaitMoreTraffic();
  exit(0);
}

TEST_F(ProfilerTest, AForkedChildLeavesItsParentsTraceAlone) {
  Library library(kLibrary);
  const auto* table = library.Find<Table>("ncclProfiler_v5");
  ASSERT_EQ(table->init(&context_, 42, &mask_, "world", 1, 2, 1, nullptr), ncclSuccess);
  OneCollective(*table, context_, Descriptor());
  const auto hung = std::chrono::steady_clock::now() + std::chrono::seconds(kHungSeconds);
  while (!absl::StrContains(Trace(), "receive operation") && std::chrono::steady_clock::now() < hung) usleep(1000);
  void* const handle = StartOperation(*table, context_);
  pid_t pid = 0;
  EXPECT_EQ(StatusOfChild([&] { return UseInChild(*table, context_, handle); }, &pid), 0);
  EXPECT_EQ(table->stopEvent(handle), ncclSuccess);
  OneCollective(*table, context_, Descriptor());
  ASSERT_EQ(table->finalize(context_), ncclSuccess);
  ExpectWhole(Trace());
  EXPECT_EQ(Count(Trace(), "AllGather"), 2u);
  EXPECT_EQ(Count(Trace(), "receive operation"), 3u);
  EXPECT_EQ(Trace(pid), "");
}

TEST_F(ProfilerTest, ExitWithoutFinalizeUnderTrafficEndsTheTrace) {
  pid_t pid = 0;
  EXPECT_EQ(StatusOfChild(&ExitUnderTraffic, &pid), 0);
  const std::string trace = Trace(pid);
  ExpectWhole(trace);
  EXPECT_GE(Count(trace, "receive operation"), 1000u);
}

TEST_F(ProfilerTest, AHandleAfterTheLastFinalizeFindsNothing) {
  Library library(kLibrary);
  const auto* table = library.Find<Table>("ncclProfiler_v5");
  std::set<void*> handles;
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(table->init(&context_, 42, &mask_, "world", 1, 2, 1, nullptr), ncclSuccess);
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(handles.insert(StartOperation(*table, context_)).second);
    ASSERT_EQ(table->finalize(context_), ncclSuccess);
    for (void* handle : handles) {
      EXPECT_EQ(table->recordEventState(handle, ncclProfilerProxyOpInProgress_v4, nullptr), ncclSuccess);
      EXPECT_EQ(table->stopEvent(handle), ncclSuccess);
    }
  }
}

// While another one stays, so that the trace goes on. So many rows are there at once at most.
TEST_F(ProfilerTest, RowsGoWithTheirCommunicator) {
  constexpr int kRowsMax = 8192;
  Library library(kLibrary);
  const auto* table = library.Find<Table>("ncclProfiler_v5");
  void* sub = nullptr;
  ASSERT_EQ(table->init(&context_, 42, &mask_, "world", 1, 2, 1, nullptr), ncclSuccess);
  ASSERT_EQ(table->init(&sub, 43, &mask_, "sub", 1, 2, 1, nullptr), ncclSuccess);
  for (int i = 0; i < kRowsMax; ++i) table->stopEvent(StartOperation(*table, sub, i));
  ASSERT_EQ(table->finalize(sub), ncclSuccess);
  const std::string later = absl::StrCat("\"tid\":", kRowsMax, ",");
  const auto hung = std::chrono::steady_clock::now() + std::chrono::seconds(kHungSeconds);
  while (!absl::StrContains(Trace(), later) && std::chrono::steady_clock::now() < hung) {
    table->stopEvent(StartOperation(*table, context_));
    usleep(10000);
  }
  EXPECT_TRUE(absl::StrContains(Trace(), later));
  ASSERT_EQ(table->finalize(context_), ncclSuccess);
}

TEST_F(ProfilerTest, CallsMayMeetTheLastFinalize) {
  Library library(kLibrary);
  const auto* table = library.Find<Table>("ncclProfiler_v5");
  std::atomic<void*> handle{nullptr};
  std::atomic<bool> ends{false};
  std::thread late([&] {
    while (!ends) table->recordEventState(handle, ncclProfilerProxyOpInProgress_v4, nullptr);
  });
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(table->init(&context_, 42, &mask_, "world", 1, 2, 1, nullptr), ncclSuccess);
    handle = StartOperation(*table, context_);
    EXPECT_EQ(table->finalize(context_), ncclSuccess);
  }
  ends = true;
  late.join();
}

}  // namespace
}  // namespace tcpx
