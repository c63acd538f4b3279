// What a recorder keeps of events until they are written: how much, and for how long.
#include <string>
#include <thread>
#include <vector>

#include "tests/support/kept_log.h"
#include "tests/unit/profiler/recorder_fixture.h"

namespace tcpx {
namespace {

TEST_F(RecorderTest, AGroupOfAnotherProfilerOnlyCountsNoChildren) {
  {
    Recorder recorder(Settings());
    const uint32_t comm = recorder.AddCommunicator("world");
    EventFacts facts = Facts(ncclProfileColl);
    facts.group = recorder.Start(comm, Facts(ncclProfileGroup), now_, false, true);
    void* const inside = recorder.Start(comm, facts, now_, true, true);
    recorder.Stop(facts.group, now_);
    // The next but these has the group's slot.
    for (uint32_t i = 2; i < Recorder::kSlotsMin; ++i) {
      recorder.Start(comm, Facts(ncclProfileProxyCtrl), now_, false, true);
    }
    void* const heir = recorder.Start(comm, Facts(ncclProfileColl), now_, true, true);
    recorder.Stop(inside, now_);
    recorder.Stop(heir, now_);
  }
  EXPECT_EQ(LinesWith(Trace(), "\"cat\":\"nccl\"").size(), 2u);
}

TEST_F(RecorderTest, AHandleThatIsTooOldFindsNothing) {
  Recorder recorder(Settings());
  const uint32_t comm = recorder.AddCommunicator("world");
  int other = 0;
  void* const old = recorder.Start(comm, Facts(ncclProfileProxyOp), now_, false, true);
  recorder.SetChained(old, &other);
  recorder.Stop(old, now_);
  // Children come behind their parent's end.
  EXPECT_EQ(recorder.Chained(old), &other);
  for (uint32_t i = 0; i < Recorder::kSlotsMin; ++i) {
    recorder.Stop(recorder.Start(comm, Facts(ncclProfileProxyOp), now_, false, true), now_);
  }
  EXPECT_EQ(recorder.Chained(old), nullptr);
  recorder.Note(old, ncclProfilerProxyStepSendWait, nullptr, now_);
  recorder.Stop(old, now_);
  recorder.Stop(nullptr, now_);
}

TEST_F(RecorderTest, WithoutASlotAnEventIsDroppedAndCounted) {
  KeptLog log;
  {
    Recorder recorder(Settings());
    const uint32_t comm = recorder.AddCommunicator("world");
    std::vector<void*> open;
    for (uint32_t i = 0; i < Recorder::kSlotsMax; ++i) {
      open.push_back(recorder.Start(comm, Facts(ncclProfileProxyCtrl), now_, true, false));
      ASSERT_NE(open.back(), nullptr) << i;
    }
    EXPECT_EQ(recorder.Start(comm, Facts(ncclProfileProxyCtrl), now_, true, false), nullptr);
    EXPECT_EQ(recorder.dropped(), 1u);
    for (void* handle : open) recorder.Stop(handle, now_ + 1);
  }
  EXPECT_EQ(NumberOf(LinesWith(Trace(), "tcpx_dropped").at(0), "events"), 1);
}

// Where the writer is behind, the trace loses events, and not the profiler behind this one.
TEST_F(RecorderTest, WithoutASlotForTheTraceAnotherProfilerHasOne) {
  KeptLog log;
  int other = 0;
  {
    Recorder recorder(Settings());
    const uint32_t comm = recorder.AddCommunicator("world");
    std::vector<void*> open;
    for (uint32_t i = 0; i < Recorder::kSlotsMax; ++i) {
      open.push_back(recorder.Start(comm, Facts(ncclProfileProxyCtrl), now_, true, true));
    }
    for (const bool wanted : {true, false}) {
      void* const handle = recorder.Start(comm, Facts(ncclProfileColl), now_, wanted, true);
      recorder.SetChained(handle, &other);
      EXPECT_EQ(recorder.Chained(handle), &other);
      recorder.Stop(handle, now_);
    }
    EXPECT_EQ(recorder.dropped(), 1u);
    for (void* handle : open) recorder.Stop(handle, now_ + 1);
  }
  EXPECT_EQ(NumberOf(LinesWith(Trace(), "tcpx_dropped").at(0), "events"), 1);
  EXPECT_EQ(LinesWith(Trace(), "\"cat\":\"proxy\"").size(), Recorder::kSlotsMax);
  EXPECT_EQ(LinesWith(Trace(), "\"cat\":\"nccl\"").size(), 0u);
}

TEST_F(RecorderTest, ManyThreadsRecordAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  {
    Recorder recorder(Settings());
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, comm = recorder.AddCommunicator(absl::StrCat("comm", t))] {
        for (int i = 0; i < kEach; ++i) {
          void* const operation = recorder.Start(comm, Facts(ncclProfileProxyOp), now_, true, false);
          void* const step = recorder.Start(comm, Facts(ncclProfileProxyStep, operation), now_, true, false);
          recorder.Note(step, ncclProfilerProxyStepRecvWait, nullptr, now_);
          recorder.Stop(step, now_ + 1);
          recorder.Stop(operation, now_ + 2);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(recorder.dropped(), 0u);
  }
  const std::string trace = Trace();
  EXPECT_EQ(LinesWith(trace, "receive operation").size(), static_cast<size_t>(kThreads * kEach));
  EXPECT_EQ(LinesWith(trace, "\"name\":\"step").size(), static_cast<size_t>(kThreads * kEach));
}

}  // namespace
}  // namespace tcpx
