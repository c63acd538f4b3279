// The health socket to another process dies: a peer that is stopped is no peer that is gone, and one that is killed
// right afterwards is known to be gone at once, at the end that dials and at the one that waits for that.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

class HealthPeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("TCPX_HEAL", "1", 1);
    setenv("TCPX_SPREAD_ERRORS", "0", 1);
    setenv("TCPX_RECONNECT_TIMEOUT", "600", 1);
    setenv("TCPX_PEER_TIMEOUT", "600", 1);
  }
};

// One connection, from `listens` false to true.
void* Meet(Rank* rank, Control& peer, bool listens) {
  char handle[kHandleBytesMax] = {};
  void* const listen = listens ? rank->Listen(handle) : nullptr;
  listens ? peer.Send(handle, sizeof(handle)) : peer.Receive(handle, sizeof(handle));
  Ends ends;
  TCPX_REQUIRE(rank->Poll(listens ? nullptr : handle, listen, &ends) == ncclSuccess, LogText());
  if (listens) rank->CloseListen(listen);
  return listens ? ends.receive : ends.send;
}

Stream::Shape Endless() {
  Stream::Shape shape;
  shape.message_bytes = 50000;
  shape.window = 4;
  return shape;
}

// Streams, and dies in the middle.
void Doomed(Control& peer, bool listens, bool stands_still) {
  auto* rank = new Rank;
  void* comm = Meet(rank, peer, listens);
  Stream stream(&rank->net(), listens ? Stream::Way::kReceive : Stream::Way::kSend, comm, Endless());
  const pid_t self = getpid();
  peer.Send(&self, sizeof(self));
  while (!peer.Rings()) TCPX_REQUIRE(stream.Step() == ncclSuccess, LogText());
  peer.Await('k');
  if (stands_still) {
    peer.Tell('k');
    raise(SIGSTOP);
  }
  while (true) (void)stream.Step();
}

// Kills the socket, and at once its peer; then it must have an error.
void Survivor(Control& peer, bool listens) {
  Rank rank;
  void* comm = Meet(&rank, peer, listens);
  Stream stream(&rank.net(), listens ? Stream::Way::kReceive : Stream::Way::kSend, comm, Endless());
  pid_t victim = 0;
  peer.Receive(&victim, sizeof(victim));
  for (int i = 0; i < 100; ++i) TCPX_REQUIRE(stream.Step() == ncclSuccess, LogText());
  SocketKiller killer(TestSeed(), true);
  (void)killer.KillOne();
  peer.Tell('k');
  TCPX_REQUIRE(kill(victim, SIGKILL) == 0);
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (stream.Step() == ncclSuccess) TCPX_REQUIRE(absl::Now() < deadline, "no error; ", LogText());
  fprintf(stderr, "the error came after %s\n", absl::FormatDuration(absl::Now() - (deadline - kHungAfter / 2)).c_str());
  QuickExit();
}

// The first of two processes is the one that must be right.
bool FirstWasRight(const std::string& wrong) { return !absl::StrContains(wrong, "process 1"); }

void RunDoomed(bool doomed_listens) {
  for (int i = 0; i < 5; ++i) {
    const std::string wrong = RunTogether([=](Control& peer) { Survivor(peer, !doomed_listens); },
                                          [=](Control& peer) { Doomed(peer, doomed_listens, false); });
    EXPECT_TRUE(FirstWasRight(wrong)) << wrong;
  }
}

TEST_F(HealthPeerTest, AReceiverThatIsKilledRightAfterItsSocketIsGone) { RunDoomed(true); }

TEST_F(HealthPeerTest, ASenderThatIsKilledRightAfterItsSocketIsGone) { RunDoomed(false); }

// Waits longer than any timeout here, for a peer whose kernel answers.
void OutlivesAStop(Control& peer, bool listens) {
  Rank rank;
  void* comm = Meet(&rank, peer, listens);
  Stream stream(&rank.net(), listens ? Stream::Way::kReceive : Stream::Way::kSend, comm, Endless());
  pid_t other = 0;
  peer.Receive(&other, sizeof(other));
  for (int i = 0; i < 100; ++i) TCPX_REQUIRE(stream.Step() == ncclSuccess, LogText());
  peer.Tell('k');
  peer.Await('k');
  SocketKiller killer(TestSeed(), true);
  (void)killer.KillOne();
  // By the clock: that nobody gives the peer up is no event.
  const absl::Time until = absl::Now() + absl::Seconds(8);
  while (absl::Now() < until) TCPX_REQUIRE(stream.Step() == ncclSuccess, LogText());
  TCPX_REQUIRE(kill(other, SIGCONT) == 0);
  const int64_t target = stream.finished() + 1000;
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  while (stream.finished() < target) {
    TCPX_REQUIRE(stream.Step() == ncclSuccess, LogText());
    TCPX_REQUIRE(absl::Now() < deadline, "it does not go on; ", LogText());
  }
  TCPX_REQUIRE(WarningCount() == 0, LogText());
  TCPX_REQUIRE(kill(other, SIGKILL) == 0);
  QuickExit();
}

TEST_F(HealthPeerTest, APeerThatIsStoppedIsNotGone) {
  setenv("TCPX_PEER_TIMEOUT", "2", 1);
  setenv("TCPX_RECONNECT_TIMEOUT", "1", 1);
  const auto run = [](bool listens) {
    const std::string wrong = RunTogether([=](Control& peer) { OutlivesAStop(peer, listens); },
                                          [=](Control& peer) { Doomed(peer, !listens, true); }, 3 * kHungAfter);
    return FirstWasRight(wrong) ? "" : wrong;
  };
  EXPECT_EQ("", RunBeside({[&] { return run(false); }, [&] { return run(true); }}, 4 * kHungAfter));
}

}  // namespace
}  // namespace tcpx
