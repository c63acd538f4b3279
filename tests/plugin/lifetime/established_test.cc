// When is a connection one? Not when the last lane was answered, for its dialler may have stopped waiting for that
// answer and begun anew: when its dialler says that every lane is up. The dialler is made by hand.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "common/socket.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/by_hand.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"

namespace tcpx {
namespace {

constexpr uint8_t kTag = 9;

// All of a connection that was answered.
struct Dialled {
  Dialled(const ListenByHand& listening, uint8_t number, int lanes,
          uint64_t features = kFeatureHealth | kFeatureEstablished) {
    hello.connection_id[0] = kTag;
    hello.connection_id[8] = number;
    hello.lanes = static_cast<uint16_t>(lanes);
    hello.features = features;
    hello.express_bytes = 65536;
    for (int lane = 0; lane < lanes; ++lane) {
      hello.lane = static_cast<uint16_t>(lane);
      fds.push_back(DialByHand(listening.handle, hello));
    }
  }
  void Say(const std::string& bytes) const { SayByHand(fds[0], bytes); }
  void Close() {
    for (int fd : fds) close(fd);
    fds.clear();
  }

  Hello hello;
  std::vector<int> fds;
};

// The health socket that they share.
int DialHealth(const ListenByHand& listening, uint64_t features = 0) {
  Hello hello;
  hello.kind = HelloKind::kHealth;
  hello.features = features;
  hello.connection_id[0] = kTag;
  return DialByHand(listening.handle, hello);
}

class EstablishedTest : public ModeTest {
 protected:
  void SetUp() override {
    ModeTest::SetUp();
    setenv("TCPX_HELLO_TIMEOUT", "60", 1);  // Far beyond the test: no deadline does the work.
  }
};

TEST_P(EstablishedTest, OfADiallerThatBeginsAnewTheLaterOneAloneIsAccepted) {
  for (const int lanes : {1, 3}) {
    EXPECT_EQ("", RunAlone([lanes] {
                Rank rank;
                ListenByHand listening(&rank);
                const int health = DialHealth(listening);
                Dialled given_up(listening, 1, lanes);
                // It has every answer, or it has not: nobody here can know.
                TCPX_REQUIRE(listening.Accept() == nullptr, "accepted without its dialler's word");
                given_up.Close();
                Dialled anew(listening, 2, lanes);
                anew.Say(Established() + ExpressMessage("of the later one"));
                void* const comm = listening.AcceptWithin();
                TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "of the later one");
                TCPX_REQUIRE(listening.Accept() == nullptr, "accepted twice");
                rank.CloseReceive(comm);
                anew.Close();
                close(health);
                listening.Close();
              }))
        << lanes << " lanes";
  }
}

// Its id, too, may come again, from lane 0 on; and a dialler may end with half a word.
TEST_P(EstablishedTest, WhatIsGivenUpIsForgotten) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              TCPX_REQUIRE(listening.SettlesAtMore(2), Joined(OpenDescriptors()));
              for (int i = 0; i < 3; ++i) {
                Dialled connection(listening, 1, 2);
                connection.Say(Established().substr(0, static_cast<size_t>(i) * 30));
                connection.Close();
                TCPX_REQUIRE(listening.SettlesAtMore(2), Joined(OpenDescriptors()));
              }
              TCPX_REQUIRE(listening.Accept() == nullptr);
              close(health);
              listening.Close();
            }));
}

TEST_P(EstablishedTest, TheWordComesInPieces) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              const std::string word = Established();
              for (const size_t piece : {size_t{1}, size_t{7}, size_t{63}}) {
                Dialled connection(listening, static_cast<uint8_t>(piece), 2);
                size_t said = 0;
                for (; said + piece < word.size(); said += piece) {
                  connection.Say(word.substr(said, piece));
                  GoRound(listening.handle);
                }
                TCPX_REQUIRE(listening.Accept() == nullptr, "accepted by ", said, " bytes of a word");
                // The last piece and what is the comm's come together.
                connection.Say(word.substr(said) + ExpressMessage("first") + ExpressMessage("second", 1));
                void* const comm = listening.AcceptWithin();
                TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "first");
                TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "second");
                rank.CloseReceive(comm);
                connection.Close();
              }
              close(health);
              listening.Close();
            }));
}

// The dialler has said the word and closed: its other lanes' ends may be seen first.
TEST_P(EstablishedTest, AWordCountsWhateverEnds) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              Dialled connection(listening, 1, 3);
              close(connection.fds[1]);
              close(connection.fds[2]);
              GoRound(listening.handle);
              TCPX_REQUIRE(listening.Accept() == nullptr);
              connection.Say(Established() + ExpressMessage("a last word"));
              close(connection.fds[0]);
              void* const comm = listening.AcceptWithin();
              TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "a last word");
              rank.CloseReceive(comm);
              close(health);
              listening.Close();
            }));
}

// A hello that comes late takes nothing from a connection that is up, accepted or not.
TEST_P(EstablishedTest, NoLaneOfItIsDialledAnyMore) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              Dialled connection(listening, 1, 2);
              connection.Say(Established() + ExpressMessage("it is up"));
              GoRound(listening.handle);
              Hello late = connection.hello;
              for (const uint32_t attempt : {0, 1, 7}) {
                late.attempt = attempt;
                Answer answer;
                close(DialByHand(listening.handle, late, &answer));
                TCPX_REQUIRE(answer.status == HelloStatus::kDuplicateLane, HelloStatusText(answer.status));
              }
              void* const comm = listening.AcceptWithin();
              TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "it is up");
              rank.CloseReceive(comm);
              connection.Close();
              close(health);
              listening.Close();
            }));
}

// A lane that is dialled again while the word is awaited.
TEST_P(EstablishedTest, ALaneMayBeDialledAgainBeforeTheWord) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              for (const uint16_t lane : {0, 1}) {
                Dialled connection(listening, static_cast<uint8_t>(lane + 1), 2);
                connection.Say(lane == 0 ? Established().substr(0, 50) : "");
                close(connection.fds[lane]);
                Hello again = connection.hello;
                again.lane = lane;
                again.attempt = 1;
                connection.fds[lane] = DialByHand(listening.handle, again);
                TCPX_REQUIRE(listening.Accept() == nullptr);
                connection.Say(Established() + ExpressMessage("as one"));
                void* const comm = listening.AcceptWithin();
                TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "as one");
                rank.CloseReceive(comm);
                connection.Close();
              }
              close(health);
              listening.Close();
            }));
}

TEST_P(EstablishedTest, NonsenseEndsTheConnection) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              for (const std::string& nonsense : {ExpressMessage(""), std::string(kHeaderBytes, '\x20')}) {
                Dialled connection(listening, 1, 2);
                connection.Say(nonsense);
                for (int fd : connection.fds) TCPX_REQUIRE(EndsByHand(fd));
                connection.Close();
              }
              TCPX_REQUIRE(listening.Accept() == nullptr);
              TCPX_REQUIRE(LogHas("stranger 127.0.0.1:"), LogText());
              close(health);
              listening.Close();
            }));
}

// Deadlines that are due meanwhile do not end what only waits for a dialler that is stopped.
TEST_P(EstablishedTest, TheWordMayTakeLong) {
  setenv("TCPX_HELLO_TIMEOUT", "3", 1);
  setenv("NCCL_SOCKET_RETRY_CNT", "0", 1);
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              Dialled connection(listening, 1, 2);
              // Begun later, and never whole: it ends by the same deadline.
              Hello rest = connection.hello;
              rest.connection_id[8] = 2;
              rest.lane = 0;
              const int first_of_two = DialByHand(listening.handle, rest);
              TCPX_REQUIRE(EndsByHand(first_of_two));
              close(first_of_two);
              connection.Say(Established() + ExpressMessage("after all"));
              void* const comm = listening.AcceptWithin();
              TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "after all");
              rank.CloseReceive(comm);
              connection.Close();
              char byte;
              TCPX_REQUIRE(recv(health, &byte, 1, MSG_DONTWAIT) < 0, "the health socket was closed");
              close(health);
              listening.Close();
            }));
}

// Its process has died, as its health socket tells: nobody waits for the word till a deadline.
TEST_P(EstablishedTest, ADiallerThatHasDiedSaysNoWord) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              Dialled connection(listening, 1, 2);
              TCPX_REQUIRE(listening.Accept() == nullptr);
              close(health);
              const absl::Time deadline = absl::Now() + kHungAfter / 2;
              void* comm = nullptr;
              while (rank.net().Accept(listening.listen, &comm) == ncclSuccess) {
                TCPX_REQUIRE(comm == nullptr && absl::Now() < deadline, "accept waits on; ", LogText());
                absl::SleepFor(absl::Milliseconds(1));
              }
              TCPX_REQUIRE(LogHas("their dialler has died"), LogText());
              connection.Close();
              rank.Finalize();
            }));
}

// A device on the path that resets flows says nothing of their processes: this dialler lives, and begins anew.
TEST_P(EstablishedTest, AResetOfTheHealthSocketIsNoDeath) {
  for (const char* heal : {"0", "1"}) {
    setenv("TCPX_HEAL", heal, 1);
    EXPECT_EQ("", RunAlone([] {
                Rank rank;
                ListenByHand listening(&rank);
                const int reset = DialHealth(listening, kFeatureHealHealth);
                Dialled given_up(listening, 1, 2);
                TCPX_REQUIRE(listening.Accept() == nullptr);
                TCPX_REQUIRE(SetResetOnClose(reset).ok());
                close(reset);
                GoRound(listening.handle);
                TCPX_REQUIRE(listening.Accept() == nullptr);
                given_up.Close();
                GoRound(listening.handle);
                TCPX_REQUIRE(listening.Accept() == nullptr);
                const int health = DialHealth(listening, kFeatureHealHealth);
                Dialled anew(listening, 2, 2);
                anew.Say(Established() + ExpressMessage("it lives"));
                void* const comm = listening.AcceptWithin();
                TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "it lives");
                rank.CloseReceive(comm);
                anew.Close();
                close(health);
                listening.Close();
              }))
        << "TCPX_HEAL=" << heal;
  }
}

// A dialler that fails at once says so by the health socket, which may be heard before the word.
TEST_P(EstablishedTest, AFailureThatIsHeardBeforeTheWordCounts) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              Dialled connection(listening, 1, 2);
              FrameHeader header;
              header.kind = FrameKind::kError;
              const std::string cause = "it broke over there";
              const auto& id = connection.hello.connection_id;
              header.length = static_cast<uint32_t>(id.size() + cause.size());
              std::string notice(kHeaderBytes, '\0');
              EncodeHeader(header, &notice[0]);
              SayByHand(health, notice + std::string(id.begin(), id.end()) + cause);
              GoRound(listening.handle);
              connection.Say(Established());
              // By the connection, or by accept, since the communicator has failed with it.
              const absl::Time deadline = absl::Now() + kHungAfter;
              void* comm = nullptr;
              ncclResult_t result = ncclSuccess;
              while (comm == nullptr && result == ncclSuccess) {
                result = rank.net().Accept(listening.listen, &comm);
                TCPX_REQUIRE(absl::Now() < deadline, "nothing is heard; ", LogText());
              }
              TCPX_REQUIRE(LogHas(cause), LogText());
              TCPX_REQUIRE(comm == nullptr || rank.net().CloseRecv(comm) == ncclSuccess);
              connection.Close();
              close(health);
              rank.Finalize();
            }));
}

// An older build says no word, and its first bytes after the answer are its messages.
TEST_P(EstablishedTest, ADiallerThatDoesNotKnowTheWord) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              const int health = DialHealth(listening);
              Dialled connection(listening, 1, 2, kFeatureHealth);
              void* const comm = listening.AcceptWithin();
              connection.Say(ExpressMessage("as before"));
              TCPX_REQUIRE(ReceiveText(&rank, comm, 100) == "as before");
              rank.CloseReceive(comm);
              connection.Close();
              close(health);
              listening.Close();
            }));
}

INSTANTIATE_TEST_SUITE_P(Modes, EstablishedTest, ::testing::Values(AllModes({4})[0], AllModes({4})[2]), ShortModeName);

}  // namespace
}  // namespace tcpx
