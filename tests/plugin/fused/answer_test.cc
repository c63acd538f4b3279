// What the answer of a peer with several interfaces does to the one who dials: lanes go where it says, and an answer
// that no honest peer gives ends the connect with an error, soon and with a reason. The peer is made by hand.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "net_socket/message/wire.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

// The dialling rank: connects with the handle it is given, and says what came of it.
ncclResult_t Dial(Rank* rank, Control& peer, Ends* ends) {
  char handle[kHandleBytesMax];
  peer.Receive(handle, sizeof(handle));
  return rank->Poll(handle, nullptr, ends);
}

class AnswerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mode{.engine = "auto", .lanes = 7}.Apply();
    unsetenv("TCPX_THREADS");
    setenv("NCCL_SOCKET_RETRY_CNT", "1", 1);
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
    setenv("TCPX_HELLO_TIMEOUT", "60", 1);  // Far beyond the test.
  }
};

TEST_F(AnswerTest, LanesGoWhereItSays) {
  const auto dial = [](Control& peer) {
    Rank rank;
    Ends ends;
    TCPX_REQUIRE(Dial(&rank, peer, &ends) == ncclSuccess, LogText());
    peer.Tell('c');
    peer.Await('d');
    rank.Close(ends);
    rank.Finalize();
  };
  const auto answer = [](Control& peer) {
    const FakeAcceptor listeners[3];
    peer.Send(listeners[0].HandleBytes(3).data(), kHandleBytesMax);
    Answer said;
    // By speed: one of the six bulk lanes for each of the first two, and the rest for the third.
    const uint32_t speeds[] = {10000, 0, 80000};
    for (int i = 0; i < 3; ++i) said.nics.push_back({listeners[i].address(), speeds[i]});
    const int expected[] = {0, 0, 1, 2, 2, 2, 2};
    std::vector<int> lanes;
    for (int lane = 0; lane < 7; ++lane) {
      lanes.push_back(listeners[expected[lane]].Accept());
      const Hello hello = HearHello(lanes.back());
      if (lane == 0 || lane == 2) TCPX_REQUIRE(hello.lane == lane, hello.lane);
      TCPX_REQUIRE(hello.lanes == 7, hello.lanes);
      SayByHand(lanes.back(), Encoded(said));
    }
    peer.Await('c');  // A lane that ends before the dialler has all of them is dialled again.
    peer.Tell('d');
    for (int lane : lanes) close(lane);
  };
  EXPECT_EQ("", RunTogether(dial, answer));
}

struct Lie {
  const char* name;
  std::function<std::string(const SocketAddress&)> bytes;
  bool closes;   // after it; else the lane stays open
  bool retried;  // like a peer that had no time
  const char* reason;
};
void PrintTo(const Lie& lie, std::ostream* out) { *out << lie.name; }

std::string LieName(const ::testing::TestParamInfo<Lie>& info) { return info.param.name; }

std::string WithSecond(const SocketAddress& honest, const char* second) {
  Answer answer;
  answer.nics = {{honest, 10000}, {*SocketAddress::Parse(second), 10000}};
  return Encoded(answer);
}

std::string WithCount(uint32_t count) {
  std::string bytes = Encoded(Answer());
  memcpy(bytes.data() + 12, &count, sizeof(count));
  return bytes;
}

const Lie kLies[] = {
    {"NineInterfaces", [](const SocketAddress&) { return WithCount(9); }, false, false,
     "the answer makes no sense: more interfaces than a device can have"},
    {"FourBillionInterfaces", [](const SocketAddress&) { return WithCount(0xffffffff); }, false, false,
     "the answer makes no sense: more interfaces than a device can have"},
    {"NoPort", [](const SocketAddress& a) { return WithSecond(a, "127.0.0.1"); }, false, false,
     "the answer makes no sense: an interface without an address"},
    {"NoFamily", [](const SocketAddress&) { return WithCount(1) + std::string(kPeerNicBytes, '\0'); }, false, false,
     "the answer makes no sense: an interface without an address"},
    {"OtherFamily", [](const SocketAddress& a) { return WithSecond(a, "[::1]:80"); }, false, false,
     "the answer holds the address [::1]:80, which is not one of a peer at 127.0.0.1:"},
    {"Wildcard", [](const SocketAddress& a) { return WithSecond(a, "0.0.0.0:80"); }, false, false,
     "the answer holds the address 0.0.0.0:80, which is not one of a peer at 127.0.0.1:"},
    {"SilentBeforeTheInterfaces", [](const SocketAddress&) { return WithCount(8); }, false, true,
     "connected, but the peer does not answer the hello"},
    {"SilentWithinThem", [](const SocketAddress&) { return WithCount(8) + std::string(8 * kPeerNicBytes - 1, 'x'); },
     false, true, "connected, but the peer does not answer the hello"},
    {"EndsBeforeTheInterfaces", [](const SocketAddress&) { return WithCount(8); }, true, true,
     "the peer closed the connection during the hello"},
    {"EndsWithinThem", [](const SocketAddress&) { return WithCount(8) + std::string(kPeerNicBytes + 1, '\0'); }, true,
     true, "the peer closed the connection during the hello"},
};

class LieTest : public AnswerTest, public ::testing::WithParamInterface<Lie> {};

TEST_P(LieTest, IsAnErrorWithAReason) {
  const bool silent = GetParam().retried && !GetParam().closes;
  if (silent) setenv("TCPX_HELLO_TIMEOUT", "1", 1);
  const auto dial = [](Control& peer) {
    Rank rank;
    Ends ends;
    const ncclResult_t result = Dial(&rank, peer, &ends);
    TCPX_REQUIRE(result == ncclRemoteError, static_cast<int>(result), "; ", LogText());
    TCPX_REQUIRE(WarningCount() == 1 && LogHas(GetParam().reason), LogText());
    rank.Finalize();
    peer.Tell('d');
  };
  const auto answer = [](Control& peer) {
    const FakeAcceptor listener;
    peer.Send(listener.HandleBytes(2).data(), kHandleBytesMax);
    std::vector<int> lanes;
    for (int attempt = 0; attempt < (GetParam().retried ? 2 : 1); ++attempt) {
      lanes.push_back(listener.Accept());
      const Hello hello = HearHello(lanes.back());
      TCPX_REQUIRE(hello.lane == 0, hello.lane);
      SayByHand(lanes.back(), GetParam().bytes(listener.address()));
      if (GetParam().closes) close(lanes.back());
    }
    peer.Await('d');
  };
  EXPECT_EQ("", RunTogether(dial, answer));
}

INSTANTIATE_TEST_SUITE_P(Lies, LieTest, ::testing::ValuesIn(kLies), LieName);

}  // namespace
}  // namespace tcpx
