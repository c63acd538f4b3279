// An abort (a close with requests outstanding, then finalize and unload) with a peer that is stopped: it waits for
// nobody. An orderly end does wait, and keeps no other communicator from what it does.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <string>
#include <thread>

#include "absl/time/clock.h"
#include "tests/support/deadline.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

// Far above what it takes on a busy machine, far below TCPX_LINGER as set here.
constexpr absl::Duration kAtOnce = absl::Seconds(20);
constexpr Stream::Shape kShape = {300000, 8, 16, true};

// Takes part, says who it is, and stops until it is woken.
void TakePartAndStop(Control& peer) {
  auto* rank = new Rank;  // Closes nothing: its sockets stay as they are.
  const Ends ends = rank->Connect(peer);
  Stream recv(&rank->net(), Stream::Way::kReceive, ends.receive, kShape);
  recv.Finish();
  const pid_t self = getpid();
  peer.Send(&self, sizeof(self));
  peer.Await('s');
  raise(SIGSTOP);
  QuickExit();
}

// 'T': stopped (proc_pid_stat(5)).
char StateOf(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  const size_t name_end = line.rfind(')');
  return name_end + 2 < line.size() ? line[name_end + 2] : '?';
}

struct Stopped {
  explicit Stopped(Control& peer) {
    peer.Receive(&pid, sizeof(pid));
    peer.Tell('s');
    const Deadline deadline(30);
    while (StateOf(pid) != 'T') {
      TCPX_REQUIRE(!deadline.Over(), "it does not stop");
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  ~Stopped() { Wake(); }

  void Wake() const { kill(pid, SIGCONT); }

  pid_t pid = 0;
};

// What a context says at its end, before it waits.
int StatisticsLines() { return CountInLog(" connections, sent "); }

class AbortTest : public ModeTest {
 protected:
  void SetUp() override {
    ModeTest::SetUp();
    setenv("TCPX_LINGER", "300", 1);
  }
};

// All sends are done, so their comm closes in order; the receives are not.
TEST_P(AbortTest, WaitsForNoStoppedPeer) {
  const auto abort_beside_it = [](Control& peer) {
    Rank rank;
    const Ends ends = rank.Connect(peer);
    Stream send(&rank.net(), Stream::Way::kSend, ends.send, kShape);
    send.Finish();
    Stopped stopped(peer);
    Stream recv(&rank.net(), Stream::Way::kReceive, ends.receive, kShape);
    TCPX_REQUIRE(recv.Step() == ncclSuccess);
    const absl::Time begun = absl::Now();
    send.Deregister();
    rank.CloseSend(ends.send);
    recv.Deregister();
    rank.CloseReceive(ends.receive);
    rank.Finalize();
    const absl::Duration finalized = absl::Now() - begun;
    TCPX_REQUIRE(finalized < kAtOnce, "finalize came back after ", absl::FormatDuration(finalized));
    rank.Unload();
    const absl::Duration unloaded = absl::Now() - begun;
    TCPX_REQUIRE(unloaded < kAtOnce, "all was over after ", absl::FormatDuration(unloaded));
  };
  EXPECT_EQ("", RunTogether(abort_beside_it, TakePartAndStop));
}

TEST_P(AbortTest, AnOrderlyFinalizeThatWaitsKeepsNobodyElse) {
  const auto finalize_beside_it = [](Control& peer) {
    Rank rank;
    const Ends ends = rank.Connect(peer);
    Stream send(&rank.net(), Stream::Way::kSend, ends.send, kShape);
    send.Finish();
    Stopped stopped(peer);
    send.Deregister();
    rank.Close(ends);
    const int lines = StatisticsLines();
    std::atomic<bool> finalized{false};
    std::thread other([&rank, &finalized] {
      rank.Finalize();
      finalized = true;
    });
    const Deadline deadline(30);
    while (StatisticsLines() == lines) TCPX_REQUIRE(deadline.Yield(), "finalize did not begin; ", LogText());
    const absl::Time begun = absl::Now();
    void* const second = rank.NewContext();
    const absl::Duration waited = absl::Now() - begun;
    absl::SleepFor(absl::Milliseconds(500));  // That it goes on waiting is no event.
    TCPX_REQUIRE(!finalized, "it did not wait");
    stopped.Wake();
    other.join();
    TCPX_REQUIRE(waited < kAtOnce, "init waited for ", absl::FormatDuration(waited));
    TCPX_REQUIRE(rank.net().Finalize(second) == ncclSuccess);
  };
  EXPECT_EQ("", RunTogether(finalize_beside_it, TakePartAndStop));
}

INSTANTIATE_TEST_SUITE_P(Modes, AbortTest, ::testing::ValuesIn(AllModes({4})), ShortModeName);

}  // namespace
}  // namespace tcpx
