// Somebody who has read a ticket asks for keys as fast as he can, from an address of his own: peers connect and lanes
// heal all the same, and in time.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

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
constexpr int kConnects = 20;
constexpr int64_t kConnectNs = kSecond / 5;
constexpr int kTries = 4;
constexpr int kHealed = 5;

Hello EncryptedHello(uint32_t number) {
  Hello hello;
  hello.features = kFeatureSecret | kFeatureKnowsEncrypt | kFeatureEncrypt | kFeatureCiphers;
  hello.lanes = 2;
  for (size_t i = 0; i < 4; ++i) hello.connection_id[12 + i] = static_cast<uint8_t>(number >> (8 * i));
  return hello;
}

// The median of some connects, in nanoseconds.
int64_t MedianConnect(Rank* rank) {
  std::vector<int64_t> took_ns;
  for (int i = 0; i < kConnects; ++i) {
    const int64_t began_ns = MonotonicNanos();
    rank->Close(rank->ConnectToSelf());
    took_ns.push_back(MonotonicNanos() - began_ns);
  }
  std::sort(took_ns.begin(), took_ns.end());
  std::fprintf(stderr, "of %d connects the median took %.3f s and the slowest %.3f s\n", kConnects,
               static_cast<double>(took_ns[kConnects / 2]) / kSecond, static_cast<double>(took_ns.back()) / kSecond);
  return took_ns[kConnects / 2];
}

// Asks for keys until the peer has enough.
void Flood(Control& peer) {
  char handle[kHandleBytesMax];
  peer.Receive(handle, sizeof(handle));
  peer.Await('b');
  std::deque<Visitor> visitors;
  uint32_t asked = 0;
  for (; !peer.Rings(); ++asked) {
    visitors.emplace_back(handle, "127.0.0.2");
    (void)visitors.back().Say(HelloFor(handle, EncryptedHello(asked)) + std::string(kProofBytes, 'x'));
    if (visitors.size() > kAtOnce) visitors.pop_front();
    if (asked == kAtOnce) peer.Tell('f');
  }
  std::fprintf(stderr, "%u keys were asked for\n", asked);
  peer.Await('e');
  peer.Tell('e');
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
    // On a machine that other tests keep busy a connect takes long without a flood, too.
    const int64_t alone_ns = MedianConnect(&rank);
    peer.Tell('b');
    peer.Await('f');
    const int64_t most_ns = TimeScale() * kConnectNs + 4 * alone_ns;
    int64_t flooded_ns = MedianConnect(&rank);
    // Other tests may have begun since.
    for (int i = 1; i < kTries && flooded_ns > most_ns; ++i) flooded_ns = MedianConnect(&rank);
    Deadline deadline;
    while (CountInLog("did not prove the shared secret") == 0) TCPX_REQUIRE(deadline.Yield(), LogText());
    peer.Tell('e');
    peer.Await('e');
    TCPX_REQUIRE(flooded_ns <= most_ns, flooded_ns, " ns, and alone ", alone_ns);
    rank.CloseListen(listen);
    rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(host, &Flood));
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
    _exit(0);
  };
  EXPECT_EQ("", RunTogether(host, &Flood));
}

}  // namespace
}  // namespace tcpx
