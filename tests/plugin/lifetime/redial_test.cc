// What the dialler does about an acceptor that takes back what it said: it dials the lane, or the whole connection,
// anew.
#include <errno.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "net_socket/message/wire.h"
#include "tests/support/fake_acceptor.h"
#include "tests/support/mode_test.h"
#include "tests/support/processes.h"
#include "tests/support/rank.h"

namespace tcpx {
namespace {

// An acceptor by hand, without a health socket, for one connect of a rank.
class Acceptor {
 public:
  Acceptor() { acceptor_.WriteHandle(handle_); }

  // The next socket and its hello, while connect is polled.
  int Next(Hello* hello) { return NextAt(acceptor_, hello); }
  int NextAt(const FakeAcceptor& at, Hello* hello) {
    const absl::Time deadline = absl::Now() + kHungAfter / 2;
    for (;;) {
      Poll();
      const int fd = at.TryAccept();
      if (fd >= 0) {
        *hello = HearHello(fd);
        return fd;
      }
      TCPX_REQUIRE(absl::Now() < deadline, "nobody dials; ", LogText());
    }
  }
  void Say(int fd, HelloStatus status, const std::vector<PeerNic>& nics = {}, uint64_t features = 0) {
    Answer answer;
    answer.features = features;
    answer.status = status;
    answer.nics = nics;
    SayByHand(fd, Encoded(answer));
  }
  SocketAddress address() const { return acceptor_.address(); }
  void Poll() {
    if (comm_ == nullptr) {
      TCPX_REQUIRE(rank_.net().Connect(rank_.context(), 0, handle_, &comm_) == ncclSuccess, LogText());
    }
  }
  void RequireConnected(int warnings = 0) {
    const absl::Time deadline = absl::Now() + kHungAfter / 2;
    while (comm_ == nullptr && absl::Now() < deadline) Poll();
    TCPX_REQUIRE(comm_ != nullptr && WarningCount() == warnings, LogText());
    rank_.CloseSend(comm_);
  }

 private:
  const FakeAcceptor acceptor_;
  char handle_[kHandleBytesMax] = {};
  Rank rank_;
  void* comm_ = nullptr;
};

class RedialTest : public ModeTest {
 protected:
  void SetUp() override {
    ModeTest::SetUp();
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "10", 1);
    setenv("TCPX_LANES", "2", 1);
    setenv("TCPX_LINGER", "0", 1);
  }
};

TEST_P(RedialTest, AnAnsweredLaneThatEndsWhileOthersAreDialled) {
  EXPECT_EQ("", RunAlone([] {
              Acceptor acceptor;
              Hello first, second, again;
              const int lane0 = acceptor.Next(&first);
              TCPX_REQUIRE(first.lane == 0 && first.attempt == 0);
              acceptor.Say(lane0, HelloStatus::kAccepted);
              const int lane1 = acceptor.Next(&second);
              TCPX_REQUIRE(second.lane == 1 && second.connection_id == first.connection_id);
              close(lane0);
              const int later = acceptor.Next(&again);
              TCPX_REQUIRE(again.lane == 0 && again.attempt == 1 && again.connection_id == first.connection_id);
              acceptor.Say(later, HelloStatus::kAccepted);
              acceptor.Say(lane1, HelloStatus::kAccepted);
              acceptor.RequireConnected();
            }));
}

TEST_P(RedialTest, AnAcceptorThatHasForgottenTheConnection) {
  for (HelloStatus status : {HelloStatus::kBadLane, HelloStatus::kDuplicateLane}) {
    EXPECT_EQ("", RunAlone([status] {
                Acceptor acceptor;
                Hello first, second, anew;
                acceptor.Say(acceptor.Next(&first), HelloStatus::kAccepted);
                acceptor.Say(acceptor.Next(&second), status);
                const int lane0 = acceptor.Next(&anew);
                TCPX_REQUIRE(anew.lane == 0 && anew.connection_id != first.connection_id);
                acceptor.Say(lane0, HelloStatus::kAccepted);
                acceptor.Say(acceptor.Next(&second), HelloStatus::kAccepted);
                TCPX_REQUIRE(second.lane == 1 && second.connection_id == anew.connection_id);
                acceptor.RequireConnected();
              }));
  }
}

// What comes first on `fd`, while connect is polled: a frame, or less before the end.
std::string FirstFrame(Acceptor* acceptor, int fd) {
  std::string frame;
  const absl::Time deadline = absl::Now() + kHungAfter;
  while (frame.size() < kHeaderBytes) {
    acceptor->Poll();
    char bytes[kHeaderBytes];
    const ssize_t got = recv(fd, bytes, sizeof(bytes) - frame.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno == ECONNRESET)) break;
    TCPX_REQUIRE(absl::Now() < deadline, "neither a word nor an end; ", LogText());
    if (got > 0) frame.append(bytes, static_cast<size_t>(got));
  }
  return frame;
}

// Not before all of them: an acceptor that hears it hands the connection out.
TEST_P(RedialTest, ADiallerSaysOnceThatAllLanesAreUp) {
  EXPECT_EQ("", RunAlone([] {
              Acceptor acceptor;
              Hello first, second;
              const int lane0 = acceptor.Next(&first);
              TCPX_REQUIRE((first.features & kFeatureEstablished) != 0);
              acceptor.Say(lane0, HelloStatus::kAccepted, {}, kFeatureEstablished);
              const int lane1 = acceptor.Next(&second);
              char byte;
              TCPX_REQUIRE(recv(lane0, &byte, 1, MSG_DONTWAIT) < 0, "a word before the answer");
              acceptor.Say(lane1, HelloStatus::kAccepted, {}, kFeatureEstablished);
              const std::string word = FirstFrame(&acceptor, lane0);
              TCPX_REQUIRE(word.size() == kHeaderBytes && IsEstablished(word.data()), word.size());
              acceptor.RequireConnected();
              const std::string behind = FirstFrame(&acceptor, lane0);
              TCPX_REQUIRE(behind.size() < kHeaderBytes || !IsEstablished(behind.data()), "said twice");
            }));
}

TEST_P(RedialTest, ButNotToAnAcceptorThatDoesNotKnowTheWord) {
  EXPECT_EQ("", RunAlone([] {
              Acceptor acceptor;
              Hello hello;
              const int lane0 = acceptor.Next(&hello);
              acceptor.Say(lane0, HelloStatus::kAccepted);
              acceptor.Say(acceptor.Next(&hello), HelloStatus::kAccepted);
              acceptor.RequireConnected();
              const std::string frame = FirstFrame(&acceptor, lane0);
              TCPX_REQUIRE(frame.size() < kHeaderBytes || !IsEstablished(frame.data()));
            }));
}

// Lane 0 ends in the moment in which the last lane is answered: the word is said on the one that is up.
TEST_P(RedialTest, TheWordIsSaidOnTheLaneZeroThatIsUp) {
  EXPECT_EQ("", RunAlone([] {
              Acceptor acceptor;
              Hello hello, again;
              const int lane0 = acceptor.Next(&hello);
              acceptor.Say(lane0, HelloStatus::kAccepted, {}, kFeatureEstablished);
              const int lane1 = acceptor.Next(&hello);
              shutdown(lane0, SHUT_WR);
              acceptor.Say(lane1, HelloStatus::kAccepted);
              const int later = acceptor.Next(&again);
              TCPX_REQUIRE(again.lane == 0 && again.attempt == 1 && again.connection_id == hello.connection_id);
              TCPX_REQUIRE(FirstFrame(&acceptor, lane0).empty(), "it was said on one that had ended");
              acceptor.Say(later, HelloStatus::kAccepted, {}, kFeatureEstablished);
              const std::string word = FirstFrame(&acceptor, later);
              TCPX_REQUIRE(word.size() == kHeaderBytes && IsEstablished(word.data()), word.size());
              acceptor.RequireConnected();
            }));
}

// A dial that begins anew plans its lanes anew: one that took another path before may do so again.
TEST_P(RedialTest, ALaneMakesADetourInEachBeginning) {
  setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
  EXPECT_EQ("", RunAlone([] {
              Acceptor acceptor;
              // Nobody listens at the address that the bulk lane tries first.
              const FakeAcceptor nobody(false);
              const std::vector<PeerNic> nics = {{nobody.address(), 1000}, {acceptor.address(), 1000}};
              for (const bool last : {false, true}) {
                Hello hello;
                acceptor.Say(acceptor.Next(&hello), HelloStatus::kAccepted, nics);
                const int lane1 = acceptor.Next(&hello);
                TCPX_REQUIRE(hello.lane == 1, hello.lane);
                acceptor.Say(lane1, last ? HelloStatus::kAccepted : HelloStatus::kBadLane);
              }
              acceptor.RequireConnected(1);
            }));
}

// An acceptor that has no room for a lane says nothing about its path: the lane stays there, and is dialled until there
// is room. Before, it went by another path after two tries, for good.
TEST_P(RedialTest, ALaneThatThereIsNoRoomForKeepsItsPath) {
  setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
  EXPECT_EQ("", RunAlone([] {
              constexpr uint32_t kRefusals = 6;
              Acceptor acceptor;
              const FakeAcceptor full;
              Hello hello;
              acceptor.Say(acceptor.Next(&hello), HelloStatus::kAccepted,
                           {{full.address(), 1000}, {acceptor.address(), 1000}});
              for (uint32_t i = 0; i <= kRefusals; ++i) {
                const int lane1 = acceptor.NextAt(full, &hello);
                TCPX_REQUIRE(hello.lane == 1 && hello.attempt == i, hello.lane, " ", hello.attempt);
                acceptor.Say(lane1, i < kRefusals ? HelloStatus::kBusy : HelloStatus::kAccepted);
              }
              acceptor.RequireConnected();
            }));
}

// One that refuses again and again is an error, as before.
TEST_P(RedialTest, NotForEver) {
  setenv("NCCL_SOCKET_RETRY_CNT", "2", 1);
  EXPECT_EQ("", RunAlone([] {
              Acceptor acceptor;
              Hello hello;
              for (int i = 0; i < 2; ++i) {
                acceptor.Say(acceptor.Next(&hello), HelloStatus::kAccepted);
                acceptor.Say(acceptor.Next(&hello), HelloStatus::kBadLane);
              }
              acceptor.Say(acceptor.Next(&hello), HelloStatus::kAccepted);
              const int lane1 = acceptor.Next(&hello);
              TCPX_REQUIRE(WarningCount() == 0, LogText());
              acceptor.Say(lane1, HelloStatus::kBadLane);
              const absl::Time deadline = absl::Now() + kHungAfter / 2;
              while (WarningCount() == 0) TCPX_REQUIRE(absl::Now() < deadline, "it goes on for ever");
              TCPX_REQUIRE(LogHas("the peer refused the lane index"), LogText());
            }));
}

INSTANTIATE_TEST_SUITE_P(Modes, RedialTest, ::testing::Values(AllModes({4})[0]), ShortModeName);

}  // namespace
}  // namespace tcpx
