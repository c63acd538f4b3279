// What a recorder keeps of events until they are written: how much, and for how long.
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/deadline.h"
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
  // Children come after their parent's end.
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

// If the writer is late, the trace loses events, and the chained profiler loses none.
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

// Until a number is given to another communicator, which it is when all of the one that had it is written.
void AwaitForgotten(Recorder* recorder, uint32_t communicator) {
  uint32_t next = recorder->AddCommunicator("next");
  for (const Deadline deadline; next != communicator && !deadline.Over(); next = recorder->AddCommunicator("next")) {
    recorder->EndCommunicator(next);
    usleep(10000);
  }
  EXPECT_EQ(next, communicator);
}

// The world's communicator may stay while others come and go: they leave their rows to those that follow.
TEST_F(RecorderTest, RowsGoWithTheirCommunicator) {
  {
    Recorder recorder(Settings());
    recorder.AddCommunicator("world");
    const uint32_t comm = recorder.AddCommunicator("first");
    for (uint32_t i = 0; i < Tracks::kTracksMax; ++i) {
      EventFacts facts = Facts(ncclProfileProxyCtrl);
      facts.peer = static_cast<int>(i);
      recorder.Stop(recorder.Start(comm, facts, now_, true, false), now_ + 1);
    }
    recorder.EndCommunicator(comm);
    AwaitForgotten(&recorder, comm);
    recorder.Stop(recorder.Start(comm, Facts(ncclProfileProxyCtrl), now_ + 2, true, false), now_ + 3);
  }
  const std::string trace = Trace();
  const auto events = LinesWith(trace, "\"cat\":\"proxy\"");
  ASSERT_EQ(events.size(), Tracks::kTracksMax + 1);
  EXPECT_EQ(NumberOf(events[Tracks::kTracksMax - 1], "tid"), 0);  // There was none left.
  // One of its own: the others' names are in the same file.
  EXPECT_EQ(NumberOf(events.back(), "tid"), Tracks::kTracksMax);
  const auto names = LinesWith(trace, absl::StrCat("\"tid\":", Tracks::kTracksMax, ",\"args\":{\"name\""));
  ASSERT_EQ(names.size(), 1u);
  EXPECT_TRUE(absl::StrContains(names[0], "next: 8 proxy thread")) << names[0];
}

TEST_F(RecorderTest, AnEventThatIsUnderWayKeepsItsCommunicator) {
  {
    Recorder recorder(Settings());
    const uint32_t comm = recorder.AddCommunicator("first");
    void* const operation = recorder.Start(comm, Facts(ncclProfileProxyOp), now_, true, false);
    const uint32_t idle = recorder.AddCommunicator("idle");
    recorder.EndCommunicator(comm);
    recorder.EndCommunicator(idle);
    AwaitForgotten(&recorder, idle);  // It would have got the other's number.
    recorder.Stop(operation, now_ + 1);
  }
  EXPECT_EQ(LinesWith(Trace(), "first: 5 proxy").size(), 1u);
}

// Names of rows are in each file, as long as anything may come to these.
TEST_F(RecorderTest, LaterFilesNameTheRowsOfThoseThatLiveOnly) {
  Recorder::Settings settings = Settings();
  settings.bytes_max = 1 << 18;
  {
    Recorder recorder(settings);
    const uint32_t world = recorder.AddCommunicator("world");
    const uint32_t first = recorder.AddCommunicator("first");
    for (const uint32_t comm : {world, first}) {
      recorder.Stop(recorder.Start(comm, Facts(ncclProfileProxyOp), now_, true, false), now_ + 1);
    }
    recorder.EndCommunicator(first);
    AwaitForgotten(&recorder, first);
    for (int i = 1; i < 20000; ++i) {
      recorder.Stop(recorder.Start(world, Facts(ncclProfileProxyOp), now_ + i, true, false), now_ + i + 1);
    }
  }
  EXPECT_EQ(LinesWith(Trace(), "world: 5 proxy").size(), 1u);
  EXPECT_EQ(LinesWith(Trace(), "first").size(), 0u);
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
