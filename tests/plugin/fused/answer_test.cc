// What the answer of a peer with several interfaces does to the one who dials: lanes go where it says, and an answer
// that no honest peer gives ends the connect with an error, soon and with a reason. The peer is made by hand.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/address.h"
#include "net_socket/message/wire.h"
#include "tests/plugin/lifetime/processes.h"
#include "tests/plugin/lifetime/rank.h"

namespace tcpx {
namespace {

// A listening socket that answers hellos by hand.
class ManualListener {
 public:
  ManualListener() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    TCPX_REQUIRE(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    TCPX_REQUIRE(listen(listener_, 8) == 0);
  }
  ManualListener(const ManualListener&) = delete;
  ~ManualListener() { close(listener_); }

  SocketAddress address() const {
    auto local = LocalAddress(listener_);
    TCPX_REQUIRE(local.ok());
    return *local;
  }

  // The next one's socket, after its hello.
  int Greet(Hello* hello) const {
    const int lane = accept(listener_, nullptr, nullptr);
    char bytes[kHelloBytes];
    TCPX_REQUIRE(lane >= 0 && recv(lane, bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes));
    TCPX_REQUIRE(DecodeHello(bytes, hello) == nullptr);
    return lane;
  }

  std::string HandleBytes(int nics) const {
    Handle handle;
    handle.address = address();
    handle.nics = static_cast<uint16_t>(nics);
    std::string bytes(kHandleBytesMax, '\0');
    EncodeHandle(handle, bytes.data());
    return bytes;
  }

 private:
  const int listener_;
};

void Say(int lane, const std::string& bytes) {
  TCPX_REQUIRE(send(lane, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()));
}

std::string Encoded(const Answer& answer) {
  std::string bytes(kAnswerFixedBytes + answer.nics.size() * kPeerNicBytes, '\0');
  EncodeAnswer(answer, bytes.data());
  return bytes;
}

// The dialling rank: connects with the handle it is given, and says what came of it.
ncclResult_t Dial(Rank* rank, Control& peer, void** comm) {
  char handle[kHandleBytesMax];
  peer.Receive(handle, sizeof(handle));
  const absl::Time deadline = absl::Now() + kHungAfter / 2;
  ncclResult_t result = ncclSuccess;
  while (*comm == nullptr && result == ncclSuccess) {
    result = rank->net().Connect(rank->context(), 0, handle, comm);
    TCPX_REQUIRE(absl::Now() < deadline, "neither a connection nor an error; ", LogText());
  }
  return result;
}

class AnswerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    setenv("NCCL_SOCKET_IFNAME", "lo", 1);
    setenv("NCCL_SOCKET_FAMILY", "AF_INET", 1);
    setenv("NCCL_SOCKET_RETRY_CNT", "1", 1);
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
    setenv("TCPX_HELLO_TIMEOUT", "1", 1);
    setenv("TCPX_LANES", "7", 1);
  }
};

TEST_F(AnswerTest, LanesGoWhereItSays) {
  const auto dial = [](Control& peer) {
    Rank rank;
    void* comm = nullptr;
    TCPX_REQUIRE(Dial(&rank, peer, &comm) == ncclSuccess, LogText());
    peer.Tell('c');
    peer.Await('d');
    TCPX_REQUIRE(rank.net().CloseSend(comm) == ncclSuccess);
    rank.Finalize();
  };
  const auto answer = [](Control& peer) {
    const ManualListener listeners[3];
    peer.Send(listeners[0].HandleBytes(3).data(), kHandleBytesMax);
    Answer said;
    // By speed: one of the six bulk lanes for each of the first two, and the rest for the third.
    const uint32_t speeds[] = {10000, 0, 80000};
    for (int i = 0; i < 3; ++i) said.nics.push_back({listeners[i].address(), speeds[i]});
    const int expected[] = {0, 0, 1, 2, 2, 2, 2};
    std::vector<int> lanes;
    for (int lane = 0; lane < 7; ++lane) {
      Hello hello;
      lanes.push_back(listeners[expected[lane]].Greet(&hello));
      if (lane == 0 || lane == 2) TCPX_REQUIRE(hello.lane == lane, hello.lane);
      TCPX_REQUIRE(hello.lanes == 7, hello.lanes);
      Say(lanes.back(), Encoded(said));
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
  bool closes;   // behind it; else the lane stays open
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
  const auto dial = [](Control& peer) {
    Rank rank;
    void* comm = nullptr;
    const ncclResult_t result = Dial(&rank, peer, &comm);
    TCPX_REQUIRE(result == ncclRemoteError, static_cast<int>(result), "; ", LogText());
    TCPX_REQUIRE(WarningCount() == 1 && LogText().find(GetParam().reason) != std::string::npos, LogText());
    rank.Finalize();
    peer.Tell('d');
  };
  const auto answer = [](Control& peer) {
    const ManualListener listener;
    peer.Send(listener.HandleBytes(2).data(), kHandleBytesMax);
    std::vector<int> lanes;
    for (int attempt = 0; attempt < (GetParam().retried ? 2 : 1); ++attempt) {
      Hello hello;
      lanes.push_back(listener.Greet(&hello));
      TCPX_REQUIRE(hello.lane == 0, hello.lane);
      Say(lanes.back(), GetParam().bytes(listener.address()));
      if (GetParam().closes) close(lanes.back());
    }
    peer.Await('d');
  };
  EXPECT_EQ("", RunTogether(dial, answer));
}

INSTANTIATE_TEST_SUITE_P(Lies, LieTest, ::testing::ValuesIn(kLies), LieName);

}  // namespace
}  // namespace tcpx
