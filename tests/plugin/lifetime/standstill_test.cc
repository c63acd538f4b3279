// Connects with one end that is stopped (SIGSTOP; a suspended machine, a debugger) for longer than any deadline of
// theirs, once or again and again: they come about all the same, and the traffic goes through the sockets that both
// ends mean.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/secret_file.h"
#include "tests/support/seed.h"
#include "tests/support/stream.h"

namespace tcpx {
namespace {

constexpr int kConnections = 4;
constexpr int kConnectionsMax = 60;

// When a side stops; its peer's first connect is time 0.
struct Stop {
  absl::Duration after;
  absl::Duration during;
};

struct Handles {
  char bytes[kConnectionsMax][kHandleBytesMax] = {};
};

// Stops `victim` at its time, and lets it go on, while the caller goes on.
void StopLater(pid_t victim, const Stop& stop) {
  const bool at_once = stop.after == absl::ZeroDuration();
  if (at_once) TCPX_REQUIRE(kill(victim, SIGSTOP) == 0);
  if (fork() != 0) return;
  absl::SleepFor(stop.after);
  kill(victim, SIGSTOP);
  absl::SleepFor(stop.during);
  kill(victim, SIGCONT);
  _exit(0);
}

// Now the one, now the other, at moments and for times that nobody knows.
void StopAndGo(const pid_t (&pids)[2], Rng rng) {
  if (fork() != 0) return;
  const int stops = LongRun() ? 8 : 4;
  for (int i = 0; i < stops; ++i) {
    absl::SleepFor(absl::Microseconds(rng.Between(0, 20000)));
    const pid_t victim = pids[rng.Between(0, 1)];
    const int64_t lengths_ms[] = {1, 30, 900, 1100, 1500};
    kill(victim, SIGSTOP);
    absl::SleepFor(absl::Milliseconds(lengths_ms[rng.Between(0, 4)]));
    kill(victim, SIGCONT);
  }
  _exit(0);
}

void Run(Rank* rank, const std::vector<void*>& comms, Stream::Way way) {
  for (void* comm : comms) {
    Stream::Shape shape;
    shape.message_bytes = 300000;
    shape.window = 2;
    shape.count = 6;
    Stream stream(&rank->net(), way, comm, shape);
    stream.Finish();
    stream.Deregister();
  }
}

void AcceptAll(Control& peer, size_t connections, const std::function<void()>& meet) {
  Rank rank;
  std::vector<void*> listens(connections, nullptr);
  std::vector<void*> comms(connections, nullptr);
  Handles handles;
  for (size_t i = 0; i < connections; ++i) {
    TCPX_REQUIRE(rank.net().Listen(rank.context(), 0, handles.bytes[i], &listens[i]) == ncclSuccess);
  }
  peer.Send(&handles, sizeof(handles));
  meet();
  const absl::Time deadline = absl::Now() + kHungAfter;
  for (size_t i = 0; i < connections; ++i) {
    while (comms[i] == nullptr) {
      TCPX_REQUIRE(rank.net().Accept(listens[i], &comms[i]) == ncclSuccess, LogText());
      TCPX_REQUIRE(absl::Now() < deadline, "connection ", i, " was never accepted; ", LogText());
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  Run(&rank, comms, Stream::Way::kReceive);
  peer.Await('s');
  for (void* comm : comms) rank.CloseReceive(comm);
  for (void* listen : listens) rank.CloseListen(listen);
  rank.Finalize();
}

void ConnectAll(Control& peer, size_t connections, const std::function<void()>& meet) {
  Rank rank;
  Handles handles;
  peer.Receive(&handles, sizeof(handles));
  meet();
  std::vector<void*> comms(connections, nullptr);
  const absl::Time deadline = absl::Now() + kHungAfter;
  for (bool all = false; !all; absl::SleepFor(absl::Milliseconds(1))) {
    all = true;
    for (size_t i = 0; i < connections; ++i) {
      if (comms[i] != nullptr) continue;
      TCPX_REQUIRE(rank.net().Connect(rank.context(), 0, handles.bytes[i], &comms[i]) == ncclSuccess, LogText());
      all = all && comms[i] != nullptr;
      TCPX_REQUIRE(absl::Now() < deadline, "connection ", i, " did not come about; ", LogText());
    }
  }
  Run(&rank, comms, Stream::Way::kSend);
  peer.Tell('s');
  for (void* comm : comms) rank.CloseSend(comm);
  rank.Finalize();
}

// Both ends are at the same point; the one that is to stop has said who it is.
std::function<void()> Meeting(Control& peer, bool stops, const Stop& stop) {
  return [&peer, stops, stop] {
    pid_t pid = getpid();
    if (stops) {
      peer.Send(&pid, sizeof(pid));
      peer.Await('g');
      return;
    }
    peer.Receive(&pid, sizeof(pid));
    StopLater(pid, stop);
    peer.Tell('g');
  };
}

std::string RunWith(bool acceptor_stops, const Stop& stop) {
  return RunTogether([&](Control& peer) { AcceptAll(peer, kConnections, Meeting(peer, acceptor_stops, stop)); },
                     [&](Control& peer) { ConnectAll(peer, kConnections, Meeting(peer, !acceptor_stops, stop)); },
                     2 * kHungAfter);
}

std::string RunWithStops(size_t connections, uint64_t seed) {
  const auto accept = [&](Control& peer) {
    AcceptAll(peer, connections, [&peer, seed] {
      pid_t pids[2] = {getpid(), 0};
      peer.Receive(&pids[1], sizeof(pid_t));
      StopAndGo(pids, Rng(seed));
      peer.Tell('g');
    });
  };
  const auto connect = [&](Control& peer) {
    ConnectAll(peer, connections, [&peer] {
      const pid_t pid = getpid();
      peer.Send(&pid, sizeof(pid));
      peer.Await('g');
    });
  };
  return RunTogether(accept, connect, 2 * kHungAfter);
}

// With a secret or not, and the lanes of a connection.
class StopTest : public ::testing::Test {
 protected:
  void Use(bool secret, int lanes) {
    Mode{.lanes = lanes}.Apply();
    setenv("TCPX_HELLO_TIMEOUT", "1", 1);
    if (secret) setenv("TCPX_SECRET_FILE", SecretFile().c_str(), 1);
  }
};

// And who stops.
class StandstillTest : public StopTest, public ::testing::WithParamInterface<std::tuple<bool, bool, int>> {
 protected:
  void SetUp() override {
    Use(std::get<1>(GetParam()), std::get<2>(GetParam()));
    if (LongRun()) unsetenv("TCPX_HELLO_TIMEOUT");
  }
};

TEST_P(StandstillTest, AConnectOutlastsIt) {
  std::vector<absl::Duration> lengths = {absl::Milliseconds(1200), absl::Seconds(3)};
  if (LongRun()) lengths = {absl::Milliseconds(11500), absl::Seconds(25)};
  // Before anything, and wherever a connect may be soon after.
  std::vector<absl::Duration> moments = {absl::ZeroDuration(), absl::Microseconds(500)};
  if (LongRun()) moments.insert(moments.end(), {absl::Milliseconds(1), absl::Milliseconds(2)});
  for (absl::Duration after : moments) {
    for (absl::Duration during : lengths) {
      EXPECT_EQ("", RunWith(std::get<0>(GetParam()), {after, during}))
          << "stopped after " << after << " for " << during;
    }
  }
}

std::string NameOfCase(const ::testing::TestParamInfo<std::tuple<bool, bool, int>>& info) {
  return absl::StrCat(std::get<0>(info.param) ? "acceptor" : "dialler", std::get<1>(info.param) ? "_secret_" : "_",
                      std::get<2>(info.param), "lanes");
}

INSTANTIATE_TEST_SUITE_P(Ends, StandstillTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool(), ::testing::Values(1, 4)), NameOfCase);

class StopAndGoTest : public StopTest, public ::testing::WithParamInterface<std::tuple<bool, int>> {
 protected:
  void SetUp() override { Use(std::get<0>(GetParam()), std::get<1>(GetParam())); }
};

// If a dialler begins anew, the acceptor hands out the connection that the dialler means, and no other.
TEST_P(StopAndGoTest, ConnectsOutlastIt) {
  const uint64_t first = TestSeed();
  for (uint64_t i = 0; i < (LongRun() ? 30 : 1); ++i) {
    EXPECT_EQ("", RunWithStops(LongRun() ? kConnectionsMax : 12, first + i)) << "seed " << first + i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ends, StopAndGoTest, ::testing::Values(std::tuple(false, 1), std::tuple(true, 4)));

}  // namespace
}  // namespace tcpx
