// Strangers who reach the listening port: real peers are accepted all the same, nothing is left
// over, and the log has one line for each kind and one with the number of the rest.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/by_hand.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr int kVisits = 12;

struct Host {
  void AcceptsPeers() { rank.Close(rank.ConnectToSelf()); }
  // Every visitor has left.
  void Close() {
    TCPX_REQUIRE(listening.SettlesAtMore(0), Joined(OpenDescriptors()));
    listening.Close();
  }

  Rank rank;
  ListenByHand listening{&rank};
  const char* const handle = listening.handle;
};

// kVisits came: one line for the first, one for the others.
void RequireTold(const std::string& what) {
  TCPX_REQUIRE(CountInLog("stranger 127.0.0.1:") + CountInLog("peer, or stranger, 127.0.0.1:") == 1, LogText());
  TCPX_REQUIRE(CountInLog(what) == 2, what, "; ", LogText());
  const std::string others = absl::StrCat("strangers: ", kVisits - 1, " more, the latest 127.0.0.1:");
  TCPX_REQUIRE(CountInLog(others) == 1, LogText());
}

struct Kind {
  const char* name;
  std::function<void(const char* handle, Visitor* visitor)> visit;
  bool stays;  // until the plugin closes the socket
  const char* told;
};
void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

void Foreign(Visitor* visitor, const std::string& text) {
  visitor->Say(text);
  TCPX_REQUIRE(visitor->HearToTheEnd().empty(), "an answer to a stranger");
}

// A hello that is refused, by name, whereupon the socket ends.
void Refused(Visitor* visitor, const std::string& hello, HelloStatus status) {
  const HelloStatus found = StatusFor(visitor, hello);
  TCPX_REQUIRE(found == status, static_cast<int>(found));
  TCPX_REQUIRE(visitor->HearToTheEnd().empty());
}

Hello LaneHello(uint16_t lane, uint16_t lanes) {
  Hello hello;
  hello.connection_id[8] = 1;
  hello.lane = lane;
  hello.lanes = lanes;
  return hello;
}

const Kind kKinds[] = {
    {"PortScan", [](const char*, Visitor* visitor) { visitor->Leave(); }, false, "sent nothing and left"},
    {"Http", [](const char*, Visitor* visitor) { Foreign(visitor, "GET / HTTP/1.1\r\nHost: rank0\r\n\r\n"); }, false,
     "does not speak tcpx"},
    {"Tls",
     [](const char*, Visitor* visitor) {
       Foreign(visitor, std::string("\x16\x03\x01\x00\xf0\x01\x00\x00\xec\x03\x03", 11) + std::string(60, 'r'));
     },
     false, "does not speak tcpx"},
    {"Garbage", [](const char*, Visitor* visitor) { Foreign(visitor, std::string(5000, '\xee')); }, false,
     "does not speak tcpx"},
    {"HalfAHello",
     [](const char* handle, Visitor* visitor) {
       TCPX_REQUIRE(visitor->Say(HelloFor(handle).substr(0, 31)));
       visitor->Leave();
     },
     false, "did not finish its hello"},
    {"HalfAHelloThenSilence",
     [](const char* handle, Visitor* visitor) { TCPX_REQUIRE(visitor->Say(HelloFor(handle).substr(0, 63))); }, true,
     "did not finish its hello"},
    {"Silence", [](const char*, Visitor*) {}, true, "said nothing within TCPX_HELLO_TIMEOUT"},
    {"WrongVersion",
     [](const char* handle, Visitor* visitor) {
       Hello hello;
       hello.version = kWireVersion + 1;
       Refused(visitor, HelloFor(handle, hello), HelloStatus::kWrongVersion);
     },
     false, "speaks another wire version"},
    {"WrongTicket",
     [](const char* handle, Visitor* visitor) {
       std::string hello = HelloFor(handle);
       hello[17] ^= 1;
       Refused(visitor, hello, HelloStatus::kUnknownTicket);
     },
     false, "has a ticket that nobody listens for"},
    {"LaneBehindTheLast",
     [](const char* handle, Visitor* visitor) {
       Refused(visitor, HelloFor(handle, LaneHello(4, 4)), HelloStatus::kBadLane);
     },
     false, "asked for a lane that its connection can't have"},
    {"LaneOfNoConnection",
     [](const char* handle, Visitor* visitor) {
       Refused(visitor, HelloFor(handle, LaneHello(1, 4)), HelloStatus::kBadLane);
     },
     false, "asked for a lane that its connection can't have"},
    {"NoLanes",
     [](const char* handle, Visitor* visitor) {
       Refused(visitor, HelloFor(handle, LaneHello(0, 0)), HelloStatus::kBadLane);
     },
     false, "asked for a lane that its connection can't have"},
    {"MoreLanesThanThereAre",
     [](const char* handle, Visitor* visitor) {
       Refused(visitor, HelloFor(handle, LaneHello(0, 65535)), HelloStatus::kBadLane);
     },
     false, "asked for a lane that its connection can't have"},
    {"TrafficClassOfNoOctet",
     [](const char* handle, Visitor* visitor) {
       Hello hello;
       hello.traffic_class = 0x7fffffff;
       Refused(visitor, HelloFor(handle, hello), HelloStatus::kBadTrafficClass);
     },
     false, "asked for a traffic class that is none"},
    {"UnknownPurpose",
     [](const char* handle, Visitor* visitor) {
       Hello hello;
       hello.kind = static_cast<HelloKind>(7);
       Refused(visitor, HelloFor(handle, hello), HelloStatus::kUnknownKind);
     },
     false, "asked for a kind of socket that this build does not know"},
};

class StrangersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mode{.lanes = 2}.Apply();
    setenv("TCPX_HELLO_TIMEOUT", "1", 1);
  }
};

class KindTest : public StrangersTest, public ::testing::WithParamInterface<Kind> {};

TEST_P(KindTest, GetsOneLineAndPeersGetThrough) {
  EXPECT_EQ("", RunAlone([] {
              const Kind& kind = GetParam();
              if (kind.stays) setenv("TCPX_HELLO_TIMEOUT", "2", 1);
              Host host;
              std::vector<Visitor> visitors;
              for (int i = 0; i < kVisits; ++i) {
                visitors.emplace_back(host.handle);
                kind.visit(host.handle, &visitors.back());
                if (i == kVisits / 2) host.AcceptsPeers();
              }
              for (Visitor& visitor : visitors) {
                if (kind.stays) TCPX_REQUIRE(visitor.HearToTheEnd().empty(), "an answer to a stranger");
              }
              visitors.clear();
              host.AcceptsPeers();
              host.Close();
              RequireTold(kind.told);
            }));
}

std::string KindName(const ::testing::TestParamInfo<Kind>& kind) { return kind.param.name; }

INSTANTIATE_TEST_SUITE_P(Kinds, KindTest, ::testing::ValuesIn(kKinds), KindName);

// The second of two equal hellos does not get the first one's place, whether its connection waits for lanes or not.
TEST_F(StrangersTest, TheSameLaneTwiceIsRefusedTheSecondTime) {
  EXPECT_EQ("", RunAlone([] {
              setenv("TCPX_HELLO_TIMEOUT", "60", 1);  // Far beyond the test.
              Host host;
              const std::string lane0 = HelloFor(host.handle, LaneHello(0, 2));
              const std::string lane1 = HelloFor(host.handle, LaneHello(1, 2));
              Visitor first(host.handle);
              TCPX_REQUIRE(StatusFor(&first, lane0) == HelloStatus::kAccepted);
              Visitor again(host.handle);
              Refused(&again, lane0, HelloStatus::kDuplicateLane);
              TCPX_REQUIRE(!first.Ended(), "the first one was closed");
              Visitor second(host.handle);
              TCPX_REQUIRE(StatusFor(&second, lane1) == HelloStatus::kAccepted);
              for (const std::string& hello : {lane0, lane1}) {
                Visitor late(host.handle);
                Refused(&late, hello, HelloStatus::kDuplicateLane);
              }
              void* const comm = host.listening.AcceptWithin();
              TCPX_REQUIRE(!first.Ended() && !second.Ended(), "they were closed");
              host.rank.CloseReceive(comm);
              for (Visitor* visitor : {&first, &second, &again}) visitor->Leave();
              host.AcceptsPeers();
              host.Close();
              TCPX_REQUIRE(CountInLog("asked for a lane that is there already") == 2, LogText());
            }));
}

// The time runs from the beginning: a byte now and then buys none. At this pace the whole hello takes six times as
// long.
TEST_F(StrangersTest, ASlowHelloEndsWithTheTimeoutAsAWhole) {
  EXPECT_EQ("", RunAlone([] {
              Host host;
              Visitor slow(host.handle);
              const std::string hello = HelloFor(host.handle, LaneHello(0, 2));
              for (size_t i = 0; i < hello.size() && !slow.Ended(); ++i) {
                slow.Say(hello.substr(i, 1));
                absl::SleepFor(absl::Milliseconds(100));
              }
              TCPX_REQUIRE(slow.HearToTheEnd().empty(), "the hello got through");
              slow.Leave();
              host.AcceptsPeers();
              host.Close();
              TCPX_REQUIRE(CountInLog("did not finish its hello") == 1, LogText());
            }));
}

}  // namespace
}  // namespace tcpx
