// Diallers that die in the middle of a connect: what they had opened at the acceptor goes with them, at once and not
// after a timeout.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "net_socket/message/wire.h"
#include "tests/plugin/lifetime/proc_view.h"
#include "tests/support/by_hand.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"

namespace tcpx {
namespace {

class HalfWayTest : public ModeTest {
 protected:
  void SetUp() override {
    ModeTest::SetUp();
    setenv("TCPX_HELLO_TIMEOUT", "60", 1);  // Far beyond the test: no deadline does the work.
  }
};

TEST_P(HalfWayTest, ALaneThatEndsLeavesItsPlaceAndTheLastTakesTheConnectionWithIt) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              std::vector<int> fds;
              for (uint16_t lane = 0; lane < 3; ++lane) {
                Hello hello;
                hello.connection_id[8] = 1;
                hello.lane = lane;
                hello.lanes = 4;
                Answer answer;
                fds.push_back(DialByHand(listening.handle, hello, &answer));
                TCPX_REQUIRE(answer.status == HelloStatus::kAccepted);
              }
              TCPX_REQUIRE(OpenDescriptors().size() == listening.descriptors + 6);
              close(fds[1]);
              TCPX_REQUIRE(listening.SettlesAtMore(4), Joined(OpenDescriptors()));
              Hello again;
              again.connection_id[8] = 1;
              again.lanes = 4;
              again.lane = 1;
              Answer answer;
              fds[1] = DialByHand(listening.handle, again, &answer);
              TCPX_REQUIRE(answer.status == HelloStatus::kAccepted, "the place is free");
              for (int fd : fds) close(fd);
              TCPX_REQUIRE(listening.SettlesAtMore(0), Joined(OpenDescriptors()));
              // Nothing of the connection is left: its id may come again, and only from the beginning.
              close(DialByHand(listening.handle, again, &answer));
              TCPX_REQUIRE(answer.status == HelloStatus::kBadLane);
              again.lane = 0;
              close(DialByHand(listening.handle, again, &answer));
              TCPX_REQUIRE(answer.status == HelloStatus::kAccepted);
              TCPX_REQUIRE(listening.SettlesAtMore(0), Joined(OpenDescriptors()));
              listening.Close();
            }));
}

// Who has the ticket may come again and again: what is remembered of a connection ends some time after it.
TEST_P(HalfWayTest, TheIdsOfConnectionsThatAreClosedAreForgotten) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              Hello hello;
              hello.features = kFeatureEstablished;
              for (uint8_t number = 1; number <= 40; ++number) {
                hello.connection_id[8] = number;
                const int fd = DialByHand(listening.handle, hello);
                const std::string word = Established();
                TCPX_REQUIRE(send(fd, word.data(), word.size(), MSG_NOSIGNAL) > 0);
                rank.CloseReceive(listening.AcceptWithin());
                close(fd);
              }
              hello.connection_id[8] = 1;
              Answer answer;
              close(DialByHand(listening.handle, hello, &answer));
              TCPX_REQUIRE(answer.status == HelloStatus::kAccepted, HelloStatusText(answer.status));
              listening.Close();
            }));
}

TEST_P(HalfWayTest, ALaterAttemptTakesThePlaceOfAnEarlierOne) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              Hello hello;
              hello.connection_id[8] = 1;
              hello.lanes = 2;
              hello.attempt = 1;
              Answer answer;
              const int first = DialByHand(listening.handle, hello, &answer);
              TCPX_REQUIRE(answer.status == HelloStatus::kAccepted);
              // As an earlier one that comes late, or a stranger.
              close(DialByHand(listening.handle, hello, &answer));
              TCPX_REQUIRE(answer.status == HelloStatus::kDuplicateLane);
              hello.attempt = 2;
              const int second = DialByHand(listening.handle, hello, &answer);
              TCPX_REQUIRE(answer.status == HelloStatus::kAccepted);
              char rest[kAnswerBytesMax];
              ssize_t got = 1;
              while (got > 0) got = recv(first, rest, sizeof(rest), 0);
              TCPX_REQUIRE(got == 0, "the earlier one is closed");
              close(first);
              hello.lane = 1;
              const int other = DialByHand(listening.handle, hello, &answer);
              rank.CloseReceive(listening.AcceptWithin());
              close(second);
              close(other);
              TCPX_REQUIRE(listening.SettlesAtMore(0), Joined(OpenDescriptors()));
              listening.Close();
            }));
}

TEST_P(HalfWayTest, AConnectionWaitsForItsHealthSocket) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              Hello hello;
              hello.connection_id[0] = 9;  // the tag
              hello.connection_id[8] = 1;
              hello.features = kFeatureHealth;
              Answer answer;
              const int lane = DialByHand(listening.handle, hello, &answer);
              TCPX_REQUIRE(answer.status == HelloStatus::kAccepted && (answer.features & kFeatureHealth) != 0);
              TCPX_REQUIRE(!listening.Accepts());
              Hello health = hello;
              health.kind = HelloKind::kHealth;
              health.connection_id[0] = 8;
              const int other = DialByHand(listening.handle, health, &answer);
              TCPX_REQUIRE(answer.status == HelloStatus::kAccepted);
              TCPX_REQUIRE(!listening.Accepts(), "by the health socket of others");
              health.connection_id[0] = 9;
              const int own = DialByHand(listening.handle, health, &answer);
              rank.CloseReceive(listening.AcceptWithin());
              close(lane);
              close(other);
              close(own);
              TCPX_REQUIRE(listening.SettlesAtMore(0), Joined(OpenDescriptors()));
              listening.Close();
            }));
}

TEST_P(HalfWayTest, AHealthSocketNeedsTheTicketAndAKnownKind) {
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              Hello hello;
              hello.kind = HelloKind::kHealth;
              char wrong[kHandleBytesMax];
              std::memcpy(wrong, listening.handle, sizeof(wrong));
              wrong[33] ^= 1;  // in the ticket
              Answer answer;
              close(DialByHand(wrong, hello, &answer));
              TCPX_REQUIRE(answer.status == HelloStatus::kUnknownTicket);
              hello.kind = static_cast<HelloKind>(77);
              close(DialByHand(listening.handle, hello, &answer));
              TCPX_REQUIRE(answer.status == HelloStatus::kUnknownKind);
              hello.kind = HelloKind::kHealth;
              hello.version = kWireVersion + 1;
              close(DialByHand(listening.handle, hello, &answer));
              TCPX_REQUIRE(answer.status == HelloStatus::kWrongVersion);
              TCPX_REQUIRE(listening.SettlesAtMore(0), Joined(OpenDescriptors()));
              listening.Close();
            }));
}

// With a right ticket anybody can open one and say nothing: it goes when no connection comes to use it.
TEST_P(HalfWayTest, AHealthSocketThatNobodyUsesGoes) {
  setenv("TCPX_HELLO_TIMEOUT", "1", 1);
  setenv("NCCL_SOCKET_RETRY_CNT", "0", 1);
  EXPECT_EQ("", RunAlone([] {
              Rank rank;
              ListenByHand listening(&rank);
              Hello hello;
              hello.kind = HelloKind::kHealth;
              Answer answer;
              const int fd = DialByHand(listening.handle, hello, &answer);
              TCPX_REQUIRE(answer.status == HelloStatus::kAccepted);
              TCPX_REQUIRE(listening.SettlesAtMore(1), Joined(OpenDescriptors()));
              close(fd);
              listening.Close();
            }));
}

INSTANTIATE_TEST_SUITE_P(Modes, HalfWayTest, ::testing::Values(AllModes({4})[0]), ShortModeName);

}  // namespace
}  // namespace tcpx
