// What of NCCL's events is in the trace afterwards.
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "common/clock_notes.h"
#include "tests/support/kept_log.h"
#include "tests/unit/profiler/recorder_fixture.h"

namespace tcpx {
namespace {

TEST_F(RecorderTest, NamesTheProcessAndClosesTheArray) {
  { Recorder recorder(Settings()); }
  const std::string trace = Trace();
  EXPECT_TRUE(absl::StartsWith(trace, "[\n{"));
  EXPECT_TRUE(absl::EndsWith(trace, "}\n]\n"));
  EXPECT_EQ(LinesWith(trace, R"("name":"rank 3, \"host\"")").size(), 1u);
  EXPECT_EQ(LinesWith(trace, "realtime_ns").size(), 1u);
}

TEST_F(RecorderTest, ACollectiveEndsWithTheLastOfItsOperations) {
  {
    Recorder recorder(Settings());
    const uint32_t comm = recorder.AddCommunicator("world");
    EventFacts coll = Facts(ncclProfileColl);
    coll.function.Set("AllReduce");
    void* const collective = recorder.Start(comm, coll, now_, true, false);
    recorder.Stop(collective, now_ + 1000);
    // The operation begins after its collective's end, as NCCL's do.
    void* const operation = recorder.Start(comm, Facts(ncclProfileProxyOp, collective), now_ + 5000, true, false);
    recorder.Stop(operation, now_ + 70000);
  }
  const auto lines = LinesWith(Trace(), "AllReduce");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_DOUBLE_EQ(NumberOf(lines[0], "dur"), 70);
}

TEST_F(RecorderTest, AStepShowsWhatItWaitedFor) {
  {
    Recorder recorder(Settings());
    const uint32_t comm = recorder.AddCommunicator("world");
    void* const operation = recorder.Start(comm, Facts(ncclProfileProxyOp), now_, true, false);
    void* const step = recorder.Start(comm, Facts(ncclProfileProxyStep, operation), now_, true, false);
    recorder.Note(step, ncclProfilerProxyStepSendGPUWait, nullptr, now_);
    ncclProfilerEventStateArgs_v5_t args = {};
    args.proxyStep.transSize = 4096;
    recorder.Note(step, ncclProfilerProxyStepSendWait, &args, now_ + 10000);
    recorder.Stop(step, now_ + 30000);
    recorder.Stop(operation, now_ + 40000);
  }
  const std::string trace = Trace();
  EXPECT_DOUBLE_EQ(NumberOf(LinesWith(trace, "wait for the GPU's data").at(0), "dur"), 10);
  EXPECT_DOUBLE_EQ(NumberOf(LinesWith(trace, "\"name\":\"send\"").at(0), "dur"), 20);
  EXPECT_DOUBLE_EQ(NumberOf(LinesWith(trace, "\"name\":\"step").at(0), "bytes"), 4096);
}

TEST_F(RecorderTest, AnOperationBeginsAfterItsQueue) {
  {
    Recorder recorder(Settings());
    void* const operation =
        recorder.Start(recorder.AddCommunicator("world"), Facts(ncclProfileProxyOp), now_, true, false);
    recorder.Note(operation, ncclProfilerProxyOpInProgress_v4, nullptr, now_ + 70000);
    recorder.Stop(operation, now_ + 90000);
  }
  const auto lines = LinesWith(Trace(), "receive operation");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_DOUBLE_EQ(NumberOf(lines[0], "dur"), 20);
  EXPECT_EQ(NumberOf(lines[0], "queued_us"), 70);
}

TEST_F(RecorderTest, WhatOverlapsLiesInRowsOfItsOwn) {
  {
    Recorder recorder(Settings());
    const uint32_t comm = recorder.AddCommunicator("world");
    for (const uint32_t type : {ncclProfileProxyOp, ncclProfileProxyCtrl}) {
      void* const one = recorder.Start(comm, Facts(type), now_, true, false);
      void* const two = recorder.Start(comm, Facts(type), now_ + 1, true, false);
      recorder.Stop(one, now_ + 2);
      void* const three = recorder.Start(comm, Facts(type), now_ + 3, true, false);
      recorder.Stop(two, now_ + 4);
      recorder.Stop(three, now_ + 5);
    }
  }
  const auto lines = LinesWith(Trace(), "\"cat\":\"proxy\"");
  ASSERT_EQ(lines.size(), 6u);
  for (const size_t i : {0, 3}) {
    EXPECT_NE(NumberOf(lines[i], "tid"), NumberOf(lines[i + 1], "tid"));
    EXPECT_EQ(NumberOf(lines[i], "tid"), NumberOf(lines[i + 2], "tid"));
  }
}

TEST_F(RecorderTest, CollectivesAfterEachOtherLieInOneRow) {
  {
    Recorder recorder(Settings());
    const uint32_t comm = recorder.AddCommunicator("world");
    for (int i = 0; i < 5; ++i) {
      recorder.Stop(recorder.Start(comm, Facts(ncclProfileColl), now_ + 10 * i, true, false), now_ + 10 * i + 5);
    }
  }
  const auto lines = LinesWith(Trace(), "\"cat\":\"nccl\"");
  ASSERT_EQ(lines.size(), 5u);
  for (const std::string& line : lines) EXPECT_EQ(NumberOf(line, "tid"), NumberOf(lines[0], "tid"));
}

TEST_F(RecorderTest, SamplingTakesWholeFamilies) {
  {
    Recorder::Settings settings = Settings();
    settings.sample = 3;
    Recorder recorder(settings);
    const uint32_t comm = recorder.AddCommunicator("world");
    for (int i = 0; i < 9; ++i) {
      // Somebody else wants all of them.
      void* const collective = recorder.Start(comm, Facts(ncclProfileColl), now_, true, true);
      void* const operation = recorder.Start(comm, Facts(ncclProfileProxyOp, collective), now_, true, true);
      ASSERT_NE(operation, nullptr);
      recorder.Stop(operation, now_);
      recorder.Stop(collective, now_);
    }
  }
  EXPECT_EQ(LinesWith(Trace(), "receive operation").size(), 3u);
  EXPECT_EQ(LinesWith(Trace(), "\"cat\":\"nccl\"").size(), 3u);
}

TEST_F(RecorderTest, PartsOfWhatSamplingLeftOutAreLeftOut) {
  {
    Recorder::Settings settings = Settings();
    settings.sample = 3;
    Recorder recorder(settings);
    const uint32_t comm = recorder.AddCommunicator("world");
    for (int i = 0; i < 9; ++i) {
      void* const collective = recorder.Start(comm, Facts(ncclProfileColl), now_, true, false);
      EXPECT_EQ(collective != nullptr, i % 3 == 0);
      recorder.Stop(recorder.Start(comm, Facts(ncclProfileProxyOp, collective), now_, true, false), now_);
      recorder.Stop(collective, now_);
    }
  }
  EXPECT_EQ(LinesWith(Trace(), "receive operation").size(), 3u);
}

TEST_F(RecorderTest, BeneathWhatOnlyAnotherProfilerWantsSamplingGoesOn) {
  {
    Recorder::Settings settings = Settings();
    settings.sample = 3;
    Recorder recorder(settings);
    const uint32_t comm = recorder.AddCommunicator("world");
    for (int i = 0; i < 9; ++i) {
      void* const group = recorder.Start(comm, Facts(ncclProfileGroup), now_, false, true);
      void* const collective = recorder.Start(comm, Facts(ncclProfileColl, group), now_, true, true);
      recorder.Stop(collective, now_);
      recorder.Stop(group, now_);
    }
  }
  EXPECT_EQ(LinesWith(Trace(), "\"cat\":\"nccl\"").size(), 3u);
}

TEST_F(RecorderTest, AFileThatGrowsKeepsItsLatestPart) {
  constexpr int kEvents = 20000;
  Recorder::Settings settings = Settings();
  settings.bytes_max = 1 << 20;
  {
    Recorder recorder(settings);
    const uint32_t comm = recorder.AddCommunicator("world");
    for (int i = 0; i < kEvents; ++i) {
      EventFacts facts = Facts(ncclProfileProxyOp);
      facts.steps = i + 1;
      recorder.Stop(recorder.Start(comm, facts, now_ + i, true, false), now_ + i + 1);
    }
  }
  const std::string older = Read(folder_ + "/trace.older.json");
  for (const std::string& part : {older, Trace()}) {
    EXPECT_TRUE(absl::StartsWith(part, "[\n{"));
    EXPECT_TRUE(absl::EndsWith(part, "\n]\n"));
    EXPECT_EQ(LinesWith(part, "process_name").size(), 1u);
    EXPECT_EQ(LinesWith(part, "thread_name").size(), 1u);
  }
  const auto lines = LinesWith(older + Trace(), "receive operation");
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(NumberOf(lines.back(), "steps"), kEvents);
}

// However soon it is full: else trace_merge has nothing to join it by.
TEST_F(RecorderTest, EachFileHasAClockAndTheLatestMeasures) {
  Recorder::Settings settings = Settings();
  settings.bytes_max = 1 << 17;
  ClockNotes notes;
  notes.Write("b/1/2", now_, 1, 7);
  notes.Write("b/1/2", now_ + 1, 2, 7);
  notes.Write("c/1/2", now_ + 2, 3, 7);
  {
    Recorder recorder(settings);
    const uint32_t comm = recorder.AddCommunicator("world");
    for (int i = 0; i < 5000; ++i) {
      recorder.Stop(recorder.Start(comm, Facts(ncclProfileProxyOp), now_ + i, true, false), now_ + i + 1);
    }
  }
  const std::string older = Read(folder_ + "/trace.older.json");
  for (const std::string& part : {older, Trace()}) {
    EXPECT_GE(LinesWith(part, "tcpx_clock\"").size(), 1u);
    EXPECT_EQ(LinesWith(part, "tcpx_process").size(), 1u);
    EXPECT_EQ(LinesWith(part, "tcpx_clock_offset").size(), 2u);
    EXPECT_EQ(LinesWith(part, "\"offset_ns\":2").size(), 1u);
    EXPECT_EQ(LinesWith(part, "\"offset_ns\":3").size(), 1u);
  }
}

TEST_F(RecorderTest, WhatAnEarlierProcessLeftIsNotTakenForThisOnes) {
  std::ofstream(folder_ + "/trace.json") << "old";
  std::ofstream(folder_ + "/trace.older.json") << "older";
  { const Recorder recorder(Settings()); }
  EXPECT_FALSE(absl::StrContains(Trace(), "old"));
  EXPECT_NE(0, access((folder_ + "/trace.older.json").c_str(), F_OK));
}

// Nobody waits for somebody who reads it.
TEST_F(RecorderTest, APipeInItsPlaceIsReplaced) {
  KeptLog log;
  ASSERT_EQ(0, mkfifo((folder_ + "/trace.json").c_str(), 0600));
  { EXPECT_TRUE(Recorder(Settings()).records()); }
  EXPECT_EQ(log.Warnings().size(), 0u);
}

TEST_F(RecorderTest, AFolderThatCannotBeWrittenIsSaidOnce) {
  KeptLog log;
  Recorder::Settings settings = Settings();
  settings.path = folder_ + "/missing/trace.json";
  {
    Recorder recorder(settings);
    EXPECT_FALSE(recorder.records());
    EXPECT_EQ(recorder.Start(recorder.AddCommunicator("world"), Facts(ncclProfileColl), now_, false, false), nullptr);
  }
  ASSERT_EQ(log.Warnings().size(), 1u);
  EXPECT_TRUE(absl::StrContains(log.Warnings()[0], settings.path)) << log.Warnings()[0];
}

TEST_F(RecorderTest, AFullDiskEndsTheTraceAndNothingElse) {
  KeptLog log;
  Recorder::Settings settings = Settings();
  settings.path = "/dev/full";
  {
    Recorder recorder(settings);
    const uint32_t comm = recorder.AddCommunicator("world");
    for (int i = 0; i < 1000; ++i)
      recorder.Stop(recorder.Start(comm, Facts(ncclProfileProxyOp), now_, true, false), now_);
  }
  ASSERT_EQ(log.Warnings().size(), 1u);
  EXPECT_TRUE(absl::StrContains(log.Warnings()[0], "/dev/full")) << log.Warnings()[0];
}

}  // namespace
}  // namespace tcpx
