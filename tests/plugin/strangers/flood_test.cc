// Somebody who has read a ticket asks for keys as fast as he can, from an address of his own: peers connect and lanes
// heal all the same, and in time.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "common/clock.h"
#include "tests/support/deadline.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/secret_file.h"
#include "tests/support/seed.h"
#include "tests/support/socket_killer.h"
#include "tests/support/stream.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr size_t kAtOnce = 400;
constexpr int kConnects = 7;  // a turn
constexpr int64_t kConnectNs = kSecond / 5;
constexpr int kTurns = 3;
constexpr int kHealed = 5;

Hello EncryptedHello(uint32_t number) {
  Hello hello;
  hello.features = kFeatureSecret | kFeatureKnowsEncrypt | kFeatureEncrypt | kFeatureCiphers;
  hello.lanes = 2;
  for (size_t i = 0; i < 4; ++i) hello.connection_id[12 + i] = static_cast<uint8_t>(number >> (8 * i));
  return hello;
}

void Connect(Rank* rank, std::vector<int64_t>* took_ns) {
  for (int i = 0; i < kConnects; ++i) {
    const int64_t began_ns = MonotonicNanos();
    rank->Close(rank->ConnectToSelf());
    took_ns->push_back(MonotonicNanos() - began_ns);
  }
}

int64_t MedianOf(std::vector<int64_t> took_ns, const char* when) {
  std::sort(took_ns.begin(), took_ns.end());
  const int64_t median_ns = took_ns[took_ns.size() / 2];
  std::fprintf(stderr, "%s: of %zu connects the median took %.3f s and the slowest %.3f s\n", when, took_ns.size(),
               static_cast<double>(median_ns) / kSecond, static_cast<double>(took_ns.back()) / kSecond);
  return median_ns;
}

// Asks for keys until the peer has enough, `turns` times.
void Flood(Control& peer, int turns) {
  char handle[kHandleBytesMax];
  peer.Receive(handle, sizeof(handle));
  std::deque<Visitor> visitors;
  uint32_t asked = 0;
  for (int turn = 0; turn < turns; ++turn) {
    peer.Await('b');
    for (size_t now = 0; !peer.Rings(); ++now) {
      visitors.emplace_back(handle, "127.0.0.2");
      (void)visitors.back().Say(HelloFor(handle, EncryptedHello(++asked)) + std::string(kProofBytes, 'x'));
      if (visitors.size() > kAtOnce) visitors.pop_front();
      if (now == kAtOnce) peer.Tell('f');
    }
    visitors.clear();
    peer.Await('e');
    peer.Tell('e');
  }
  std::fprintf(stderr, "%u keys were asked for\n", asked);
}

// The flood has reached the plugin.
void AwaitRefusal() {
  Deadline deadline;
  while (CountInLog("did not prove the shared secret") == 0) TCPX_REQUIRE(deadline.Yield(), LogText());
}

class FloodTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mode{.threads = 2, .lanes = 2}.Apply();
    setenv("TCPX_SECRET_FILE", SecretFile().c_str(), 1);
    setenv("TCPX_ENCRYPT", "1", 1);
  }
};

TEST_F(FloodTest, PeersConnectWhileSomebodyAsksForKeys) {
  const auto host = [](Control& peer) {
    Rank rank;
    char handle[kHandleBytesMax] = {};
    void* const listen = rank.Listen(handle);
    peer.Send(handle, sizeof(handle));
    // By turns: on a machine that other tests keep busy a connect takes long without a flood, too.
    std::vector<int64_t> alone_ns, flooded_ns;
    for (int turn = 0; turn < kTurns; ++turn) {
      Connect(&rank, &alone_ns);
      peer.Tell('b');
      peer.Await('f');
      Connect(&rank, &flooded_ns);
      if (turn + 1 == kTurns) AwaitRefusal();
      peer.Tell('e');
      peer.Await('e');
    }
    const int64_t most_ns = TimeScale() * kConnectNs + 4 * MedianOf(alone_ns, "alone");
    const int64_t median_ns = MedianOf(flooded_ns, "flooded");
    TCPX_REQUIRE(median_ns <= most_ns, median_ns, " ns, of ", most_ns);
    rank.CloseListen(listen);
    rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(host, [](Control& peer) { Flood(peer, kTurns); }));
}

TEST_F(FloodTest, LanesHealWhileSomebodyAsksForKeys) {
  setenv("TCPX_HEAL", "1", 1);
  setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
  const auto host = [](Control& peer) {
    Rank rank;
    char handle[kHandleBytesMax] = {};
    (void)rank.Listen(handle);
    const Ends ends = rank.ConnectToSelf();
    peer.Send(handle, sizeof(handle));
    peer.Tell('b');
    peer.Await('f');
    Stream::Shape shape;
    shape.message_bytes = 100000;
    shape.window = 4;
    Stream to(&rank.net(), Stream::Way::kSend, ends.send, shape);
    Stream from(&rank.net(), Stream::Way::kReceive, ends.receive, shape);
    SocketKiller killer(TestSeed());
    Deadline deadline;
    int64_t kills_at = 0;
    for (int healed = 0; healed < kHealed; healed = CountInLog(" goes on, ")) {
      TCPX_REQUIRE(!deadline.Over(), healed, " lanes went on; ", LogText());
      TCPX_REQUIRE(to.Step() == ncclSuccess && from.Step() == ncclSuccess, LogText());
      if (from.finished() < kills_at) continue;
      kills_at = from.finished() + 20;
      (void)killer.KillOne();
    }
    peer.Tell('e');
    peer.Await('e');
    TCPX_REQUIRE(WarningCount() == 0, LogText());
    QuickExit();
  };
  EXPECT_EQ("", RunTogether(host, [](Control& peer) { Flood(peer, 1); }));
}

}  // namespace
}  // namespace tcpx
