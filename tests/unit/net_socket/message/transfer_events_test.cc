// The events of requests, seen by a profiler that writes down every call.
#include "net_socket/message/transfer_events.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

std::vector<std::string>& Calls() {
  static std::vector<std::string> calls;
  return calls;
}
bool wanted = true;

// Handles are 1, 2, ... in the order of starts; a parent is a pointer to its name.
void WriteDown(void** event, EventStep step, void* parent, const SocketEvent& about) {
  static intptr_t last = 0;
  if (Calls().empty()) last = 0;
  if (step == EventStep::kStart && wanted) *event = reinterpret_cast<void*>(++last);
  const char* const names[] = {"start", "stop", "update"};
  Calls().push_back(absl::StrCat(names[static_cast<int>(step)], " ", reinterpret_cast<intptr_t>(*event), " of ",
                                 static_cast<const char*>(parent), about.receive ? " receive" : " send", " fd ",
                                 about.fd, " bytes ", about.bytes));
}

using Lines = std::vector<std::string>;
Lines TakeCalls() {
  Lines calls;
  calls.swap(Calls());
  return calls;
}

char kFirst[] = "A";
char kSecond[] = "B";

EventRecorder::Settings Lanes(int lanes, bool updates = true, bool receive = false) {
  EventRecorder::Settings settings{&WriteDown, updates, receive, {}, 4};
  for (int lane = 0; lane < lanes; ++lane) settings.fds.push_back(100 + lane);
  return settings;
}

class TransferEventsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Calls().clear();
    wanted = true;
  }
};

TEST_F(TransferEventsTest, ALaneThatIsOpenedLaterIsNamed) {
  EventRecorder::Settings settings = Lanes(33);
  for (size_t lane = 2; lane < 33; ++lane) settings.fds[lane] = -1;
  EventRecorder recorder(settings);
  recorder.NoteLane(2, 202);
  recorder.NoteLane(30, 230);  // of those that share an event
  TransferEvents* events = recorder.Begin(0, kFirst);
  events->Count(2, 100, 1000);
  events->Count(30, 200, 1000);
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), (Lines{"start 1 of A send fd 202 bytes 100", "start 2 of A send fd -1 bytes 200"}));
}

TEST_F(TransferEventsTest, StartUpdateStop) {
  EventRecorder recorder(Lanes(4));
  TransferEvents* events = recorder.Begin(0, kFirst);
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), Lines());
  events->Count(1, 100, 1000);
  events->Count(3, 200, 1000);
  EXPECT_EQ(TakeCalls(), Lines()) << "Count called the profiler";
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), (Lines{"start 1 of A send fd 101 bytes 100", "start 2 of A send fd 103 bytes 200"}));
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), Lines()) << "nothing new";
  events->Count(3, 400, 1000);
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), Lines{"update 2 of A send fd 103 bytes 600"});
  events->Count(1, 300, 1000);
  recorder.Stop(events);
  EXPECT_EQ(TakeCalls(), (Lines{"update 1 of A send fd 101 bytes 400", "stop 1 of A send fd 101 bytes 400",
                                "stop 2 of A send fd 103 bytes 600"}));
  recorder.Stop(events);
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), Lines()) << "stopped twice";
}

TEST_F(TransferEventsTest, WithoutUpdatesAnEventStartsWhenItsLengthIsFinal) {
  EventRecorder recorder(Lanes(4, false, true));
  TransferEvents* events = recorder.Begin(0, kFirst);
  events->Count(1, 100, 1000);
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), Lines());
  events->Count(2, 500, 1000);
  events->Count(1, 400, 1000);
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), (Lines{"start 1 of A receive fd 101 bytes 500", "start 2 of A receive fd 102 bytes 500"}));
  recorder.Stop(events);
  EXPECT_EQ(TakeCalls(), (Lines{"stop 1 of A receive fd 101 bytes 500", "stop 2 of A receive fd 102 bytes 500"}));
}

// A failed request, or one that is reported done before its data is there.
TEST_F(TransferEventsTest, WithoutUpdatesAnEarlyEndTellsWhatCame) {
  EventRecorder recorder(Lanes(4, false));
  TransferEvents* events = recorder.Begin(0, kFirst);
  events->Count(1, 100, 1000);
  recorder.Stop(events);
  EXPECT_EQ(TakeCalls(), (Lines{"start 1 of A send fd 101 bytes 100", "stop 1 of A send fd 101 bytes 100"}));
  events->Count(1, 900, 1000);
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), Lines()) << "after its stop";
}

TEST_F(TransferEventsTest, MessageOfNoBytesHasAnEvent) {
  for (const bool updates : {true, false}) {
    EventRecorder recorder(Lanes(1, updates));
    TransferEvents* events = recorder.Begin(0, kFirst);
    events->Count(0, 0, 0);
    recorder.Publish();
    EXPECT_EQ(TakeCalls(), Lines{"start 1 of A send fd 100 bytes 0"});
    recorder.Stop(events);
    EXPECT_EQ(TakeCalls().size(), 1u);
  }
}

// An express message is reported when it is posted, and nothing else is looked at.
TEST_F(TransferEventsTest, WholeMessagesAreReportedAtOnce) {
  for (const bool updates : {true, false}) {
    EventRecorder recorder(Lanes(4, updates));
    TransferEvents* other = recorder.Begin(1, kSecond);
    other->Count(1, 5, 10);
    TransferEvents* events = recorder.Begin(0, kFirst);
    recorder.CountWhole(events, 0, 77);
    EXPECT_EQ(TakeCalls(), Lines{"start 1 of A send fd 100 bytes 77"});
    recorder.Stop(events);
    EXPECT_EQ(TakeCalls().size(), 1u);
  }
}

TEST_F(TransferEventsTest, SlotsBeginAnew) {
  EventRecorder recorder(Lanes(1));
  TransferEvents* events = recorder.Begin(2, kFirst);
  events->Count(0, 7, 7);
  recorder.Stop(events);
  TakeCalls();
  EXPECT_EQ(events, recorder.Begin(2, kSecond));
  events->Count(0, 9, 9);
  recorder.Stop(events);
  EXPECT_EQ(TakeCalls(), (Lines{"start 1 of B send fd 100 bytes 9", "stop 1 of B send fd 100 bytes 9"}));
}

TEST_F(TransferEventsTest, OpenTransfersEndInAnyOrder) {
  EventRecorder recorder(Lanes(1));
  TransferEvents* first = recorder.Begin(0, kFirst);
  TransferEvents* second = recorder.Begin(1, kSecond);
  second->Count(0, 5, 5);
  recorder.Publish();
  first->Count(0, 3, 3);
  recorder.Stop(first);
  recorder.Stop(second);
  EXPECT_EQ(TakeCalls(), (Lines{"start 1 of B send fd 100 bytes 5", "start 2 of A send fd 100 bytes 3",
                                "stop 2 of A send fd 100 bytes 3", "stop 1 of B send fd 100 bytes 5"}));
}

TEST_F(TransferEventsTest, EightLanesHaveAnEventEach) {
  EventRecorder recorder(Lanes(8));
  TransferEvents* events = recorder.Begin(0, kFirst);
  for (int lane = 0; lane < 8; ++lane) events->Count(lane, 10, 80);
  recorder.Publish();
  const Lines calls = TakeCalls();
  ASSERT_EQ(calls.size(), 8u);
  EXPECT_EQ(calls.back(), "start 8 of A send fd 107 bytes 10");
}

TEST_F(TransferEventsTest, LanesBeyondTheEighthShareAnEventWithoutAnFd) {
  EventRecorder recorder(Lanes(20));
  TransferEvents* events = recorder.Begin(0, kFirst);
  for (int lane = 0; lane < 20; ++lane) events->Count(lane, 10, 200);
  recorder.Publish();
  const Lines calls = TakeCalls();
  ASSERT_EQ(calls.size(), 8u);
  EXPECT_EQ(calls[6], "start 7 of A send fd 106 bytes 10");
  EXPECT_EQ(calls[7], "start 8 of A send fd -1 bytes 130");
}

TEST_F(TransferEventsTest, NoParentNoEvents) {
  EventRecorder recorder(Lanes(1));
  EXPECT_EQ(recorder.Begin(0, nullptr), nullptr);
}

TEST_F(TransferEventsTest, UnwantedEventsAreNotReportedAgain) {
  EventRecorder recorder(Lanes(1));
  wanted = false;
  TransferEvents* events = recorder.Begin(0, kFirst);
  events->Count(0, 5, 10);
  recorder.Publish();
  EXPECT_EQ(TakeCalls(), Lines{"start 0 of A send fd 100 bytes 5"});
  events->Count(0, 5, 10);
  recorder.Stop(events);
  EXPECT_EQ(TakeCalls(), Lines());
}

TEST_F(TransferEventsTest, NothingIsReportedAfterDrop) {
  EventRecorder recorder(Lanes(1));
  TransferEvents* events = recorder.Begin(0, kFirst);
  events->Count(0, 5, 10);
  recorder.Publish();
  TakeCalls();
  recorder.Drop();
  events->Count(0, 5, 10);
  recorder.Publish();
  recorder.Stop(events);
  EXPECT_EQ(recorder.Begin(1, kSecond), nullptr);
  EXPECT_EQ(TakeCalls(), Lines());
}

// The whole table in use, more than once.
TEST_F(TransferEventsTest, AsManyTransfersAsSlots) {
  EventRecorder recorder(Lanes(1));
  for (int round = 0; round < 3; ++round) {
    TransferEvents* all[4];
    for (size_t i = 0; i < 4; ++i) all[i] = recorder.Begin(i, kFirst);
    for (TransferEvents* events : all) events->Count(0, 1, 1);
    recorder.Publish();
    EXPECT_EQ(TakeCalls().size(), 4u);
    for (size_t i : {2, 0, 3, 1}) recorder.Stop(all[i]);
    EXPECT_EQ(TakeCalls().size(), 4u);
  }
}

TEST_F(TransferEventsTest, OtherThreadsCount) {
  constexpr int kChunks = 20000;
  EventRecorder recorder(Lanes(4));
  TransferEvents* events = recorder.Begin(0, kFirst);
  std::vector<std::thread> threads;
  for (int lane = 0; lane < 3; ++lane) {
    threads.emplace_back([events, lane] {
      for (int i = 0; i < kChunks; ++i) events->Count(lane, 2, 3 * 2 * kChunks);
    });
  }
  for (int i = 0; i < 100; ++i) recorder.Publish();
  for (std::thread& thread : threads) thread.join();
  recorder.Stop(events);
  const Lines calls = TakeCalls();
  ASSERT_GE(calls.size(), 3u);
  for (size_t i = calls.size() - 3; i < calls.size(); ++i) {
    EXPECT_EQ(calls[i].substr(calls[i].find("bytes")), absl::StrCat("bytes ", 2 * kChunks)) << calls[i];
    EXPECT_EQ(calls[i].substr(0, 4), "stop") << calls[i];
  }
}

}  // namespace
}  // namespace tcpx
