// Somebody who has read a ticket asks for keys as fast as he can, from an address of his own: peers connect all the
// same. How long that takes is shown; key_turns_test and reactor_test hold what it depends on.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <string>

#include "common/clock.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/secret_file.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr size_t kAtOnce = 400;
constexpr int kConnects = 20;

Hello EncryptedHello(uint32_t number) {
  Hello hello;
  hello.features = kFeatureSecret | kFeatureKnowsEncrypt | kFeatureEncrypt | kFeatureCiphers;
  hello.lanes = 2;
  for (size_t i = 0; i < 4; ++i) hello.connection_id[12 + i] = static_cast<uint8_t>(number >> (8 * i));
  return hello;
}

TEST(FloodTest, PeersConnectWhileSomebodyAsksForKeys) {
  const auto host = [](Control& peer) {
    Mode{.threads = 2, .lanes = 2}.Apply();
    setenv("TCPX_SECRET_FILE", SecretFile().c_str(), 1);
    setenv("TCPX_ENCRYPT", "1", 1);
    Rank rank;
    char handle[kHandleBytesMax] = {};
    void* const listen = rank.Listen(handle);
    peer.Send(handle, sizeof(handle));
    peer.Await('f');
    int64_t slowest_ns = 0;
    for (int i = 0; i < kConnects; ++i) {
      const int64_t began_ns = MonotonicNanos();
      rank.Close(rank.ConnectToSelf());
      slowest_ns = std::max(slowest_ns, MonotonicNanos() - began_ns);
    }
    peer.Tell('e');
    peer.Await('e');
    std::fprintf(stderr, "the slowest of %d connects took %.3f s\n", kConnects,
                 static_cast<double>(slowest_ns) / kSecond);
    TCPX_REQUIRE(CountInLog("did not prove the shared secret") > 0, LogText());
    rank.CloseListen(listen);
    rank.Finalize();
  };
  const auto flood = [](Control& peer) {
    char handle[kHandleBytesMax];
    peer.Receive(handle, sizeof(handle));
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
  };
  EXPECT_EQ("", RunTogether(host, flood));
}

}  // namespace
}  // namespace tcpx
