// TCPX_SECRET_FILE through the shared library: peers with the same secret connect and talk; all others are refused, on
// both sides and at once, what is wrong; what was recorded of a connection opens no other.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "net_socket/connect/handshake.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/plugin_mode.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"
#include "tests/support/secret_file.h"
#include "tests/support/stream.h"
#include "tests/support/visitor.h"

namespace tcpx {
namespace {

constexpr char kSecret[] = "correct horse battery staple";

// Empty: none.
void UseSecret(const std::string& text) {
  if (!text.empty()) setenv("TCPX_SECRET_FILE", SecretFile(text).c_str(), 1);
}

// Until there is a comm or an error.
ncclResult_t ConnectTo(Rank* rank, const char* handle, Ends* ends) {
  char own[kHandleBytesMax];
  memcpy(own, handle, sizeof(own));
  return rank->Poll(own, nullptr, ends);
}

class SecretTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Mode{.threads = 2, .lanes = 4}.Apply();
    // Far beyond the test, and no second try: no deadline does the work.
    setenv("TCPX_HELLO_TIMEOUT", "600", 1);
    setenv("NCCL_SOCKET_RETRY_CNT", "0", 1);
    unsetenv("TCPX_SECRET_FILE");
  }
};

TEST_F(SecretTest, PeersWithTheSameOneTalkToEachOther) {
  const auto talk = [](Control& peer, const char* text) {
    UseSecret(text);
    Rank rank;
    const Ends ends = rank.Connect(peer);
    Transfer(&rank.net(), ends, {300000, 4, 8, true});
    peer.Tell('d');
    peer.Await('d');
    rank.Close(ends);
    rank.Finalize();
    TCPX_REQUIRE(WarningCount() == 0 && CountInLog("stranger") == 0, LogText());
    TCPX_REQUIRE(CountInLog("every peer has to prove the secret") == 1, LogText());
    TCPX_REQUIRE(CountInLog(kSecret) == 0, "the secret is in the log");
  };
  // The newline that an editor leaves at the end makes no difference.
  EXPECT_EQ("", RunTogether([&](Control& peer) { talk(peer, kSecret); },
                            [&](Control& peer) { talk(peer, absl::StrCat(kSecret, "\n").c_str()); }));
}

struct Mismatch {
  const char* name;
  const char* listens;
  const char* dials;
  const char* told_listening;
  const char* told_dialling;
};
void PrintTo(const Mismatch& mismatch, std::ostream* out) { *out << mismatch.name; }
std::string MismatchName(const ::testing::TestParamInfo<Mismatch>& mismatch) { return mismatch.param.name; }

const Mismatch kMismatches[] = {
    {"TheDiallerHasNone", kSecret, "", "has no shared secret: set TCPX_SECRET_FILE alike on all ranks",
     "the peer has a shared secret and this process has none: set TCPX_SECRET_FILE alike on all ranks"},
    {"TheListenerHasNone", "", kSecret, "has a shared secret and this process has none: set TCPX_SECRET_FILE alike",
     "this process has a shared secret and the peer has none: set TCPX_SECRET_FILE alike on all ranks"},
    {"TheyDiffer", kSecret, "correct horse battery stapler", "did not prove the shared secret: give all ranks the same",
     "the peer has another shared secret: give all ranks the same TCPX_SECRET_FILE"},
};

class MismatchTest : public SecretTest, public ::testing::WithParamInterface<Mismatch> {};

TEST_P(MismatchTest, IsReportedAtBothEnds) {
  const auto listens = [](Control& peer) {
    UseSecret(GetParam().listens);
    Rank rank;
    char handle[kHandleBytesMax] = {};
    void* const listen = rank.Listen(handle);
    peer.Send(handle, sizeof(handle));
    peer.Await('r');
    void* comm = nullptr;
    TCPX_REQUIRE(rank.net().Accept(listen, &comm) == ncclSuccess && comm == nullptr, "a connection");
    rank.Close(rank.ConnectToSelf());  // It shares whatever it has with itself.
    rank.CloseListen(listen);
    rank.Finalize();
    TCPX_REQUIRE(CountInLog("peer, or stranger, 127.0.0.1:") == 1, LogText());
    TCPX_REQUIRE(CountInLog(GetParam().told_listening) == 1, LogText());
  };
  const auto dials = [](Control& peer) {
    UseSecret(GetParam().dials);
    Rank rank;
    char handle[kHandleBytesMax];
    peer.Receive(handle, sizeof(handle));
    Ends ends;
    const ncclResult_t result = ConnectTo(&rank, handle, &ends);
    TCPX_REQUIRE(result == ncclRemoteError, static_cast<int>(result), "; ", LogText());
    TCPX_REQUIRE(WarningCount() == 1 && CountInLog(GetParam().told_dialling) == 1, LogText());
    peer.Tell('r');
    rank.Finalize();
  };
  EXPECT_EQ("", RunTogether(listens, dials));
}

INSTANTIATE_TEST_SUITE_P(Mismatches, MismatchTest, ::testing::ValuesIn(kMismatches), MismatchName);

// A peer made by hand: what it said and what it heard until it was accepted.
struct Record {
  std::string hello;
  std::string proof;
};

Record Greet(const char* handle_bytes, const Secret& secret, uint8_t connection) {
  Handle handle;
  TCPX_REQUIRE(DecodeHandle(handle_bytes, &handle) == nullptr);
  Hello hello;
  hello.ticket = handle.ticket;
  hello.connection_id[8] = connection;
  hello.lanes = 2;
  DialHandshake handshake(hello, &secret);
  Visitor visitor(handle_bytes);
  Record record;
  while (!handshake.done()) {
    const std::string said = handshake.TakeSaid();
    (record.hello.empty() ? record.hello : record.proof) += said;
    TCPX_REQUIRE(visitor.Say(said));
    const std::string heard = visitor.Hear(handshake.wants());
    TCPX_REQUIRE(heard.size() == handshake.wants(), "the end; ", LogText());
    heard.copy(handshake.room(), heard.size());
    handshake.Took(heard.size());
    TCPX_REQUIRE(handshake.status().ok(), handshake.status().ToString());
  }
  TCPX_REQUIRE(handshake.answer().status == HelloStatus::kAccepted, static_cast<int>(handshake.answer().status));
  return record;
}

TEST_F(SecretTest, WhatADiallerSaidOpensNothingASecondTime) {
  EXPECT_EQ("", RunAlone([] {
              UseSecret(kSecret);
              Rank rank;
              char handle[kHandleBytesMax] = {};
              void* const listen = rank.Listen(handle);
              const Record record = Greet(handle, Secret(kSecret), 1);
              TCPX_REQUIRE(record.proof.size() == kProofBytes, record.proof.size());
              for (const char* way : {"one after the other", "at once"}) {
                Visitor again(handle);
                const bool at_once = std::string(way) == "at once";
                TCPX_REQUIRE(again.Say(at_once ? record.hello + record.proof : record.hello));
                const std::string challenge = again.Hear(kAnswerFixedBytes + kNonceBytes);
                TCPX_REQUIRE(challenge.size() == kAnswerFixedBytes + kNonceBytes, way);
                const HelloStatus status = StatusFor(&again, at_once ? "" : record.proof);
                TCPX_REQUIRE(status == HelloStatus::kSecretWrong, way, " ", static_cast<int>(status));
                TCPX_REQUIRE(again.HearToTheEnd().empty());
              }
              Greet(handle, Secret(kSecret), 2);  // The secret itself still does.
              rank.CloseListen(listen);
              rank.Finalize();
              TCPX_REQUIRE(CountInLog("did not prove the shared secret") == 2, LogText());
            }));
}

// Answers a lane as a peer with the secret does. What it said, in the two parts in which it said it.
std::vector<std::string> AnswerByHand(int lane, const Secret& secret) {
  AcceptHandshake handshake(&secret);
  std::vector<std::string> said;
  while (handshake.state() == AcceptHandshake::State::kReading) {
    const size_t want = handshake.wants();
    TCPX_REQUIRE(recv(lane, handshake.room(), want, MSG_WAITALL) == static_cast<ssize_t>(want));
    handshake.Took(want);
    const bool greeted = handshake.state() == AcceptHandshake::State::kGreeted;
    said.push_back(greeted ? handshake.Encode(Answer()) : handshake.TakeSaid());
    SayByHand(lane, said.back());
  }
  TCPX_REQUIRE(handshake.state() == AcceptHandshake::State::kGreeted);
  return said;
}

TEST_F(SecretTest, WhatAnAcceptorSaidOpensNothingASecondTime) {
  setenv("TCPX_LANES", "1", 1);
  setenv("TCPX_LINGER", "0", 1);
  const auto dials = [](Control& peer) {
    UseSecret(kSecret);
    Rank rank;
    char handle[kHandleBytesMax];
    peer.Receive(handle, sizeof(handle));
    Ends ends;
    TCPX_REQUIRE(ConnectTo(&rank, handle, &ends) == ncclSuccess, LogText());
    rank.Close(ends);
    ends = Ends();
    TCPX_REQUIRE(ConnectTo(&rank, handle, &ends) == ncclRemoteError, LogText());
    TCPX_REQUIRE(CountInLog("the peer did not prove the shared secret") == 1, LogText());
    rank.Finalize();
    peer.Tell('d');
  };
  const auto answers = [](Control& peer) {
    const Secret secret(kSecret);
    const FakeAcceptor listener;
    peer.Send(listener.HandleBytes().data(), kHandleBytesMax);
    const int first = listener.Accept();
    const std::vector<std::string> said = AnswerByHand(first, secret);
    TCPX_REQUIRE(said.size() == 2, said.size());
    const int second = listener.Accept();
    HearByHand(second, kHelloBytes);
    SayByHand(second, said[0]);
    HearByHand(second, kProofBytes);
    SayByHand(second, said[1]);
    peer.Await('d');
    close(first);
    close(second);
  };
  EXPECT_EQ("", RunTogether(dials, answers));
}

// Somebody who knows the ticket and says the hello of a peer with a secret, but no proof.
TEST_F(SecretTest, ATicketAloneOpensNothing) {
  EXPECT_EQ("", RunAlone([] {
              UseSecret(kSecret);
              Rank rank;
              char handle[kHandleBytesMax] = {};
              void* const listen = rank.Listen(handle);
              for (HelloKind kind : {HelloKind::kLane, HelloKind::kHealth}) {
                Hello hello;
                hello.kind = kind;
                Visitor plain(handle);
                TCPX_REQUIRE(StatusFor(&plain, HelloFor(handle, hello)) == HelloStatus::kSecretMissing);
                hello.features = kFeatureSecret;
                Visitor pretends(handle);
                TCPX_REQUIRE(pretends.Say(HelloFor(handle, hello) + std::string(kProofBytes, 'x')));
                pretends.Hear(kAnswerFixedBytes + kNonceBytes);
                TCPX_REQUIRE(StatusFor(&pretends, "") == HelloStatus::kSecretWrong);
              }
              rank.Close(rank.ConnectToSelf());
              rank.CloseListen(listen);
              rank.Finalize();
            }));
}

}  // namespace
}  // namespace tcpx
