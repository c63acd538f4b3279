// The health socket: who hears what is said there, what its end means, and who dials it.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/socket.h"
#include "net_socket/health/health_peer.h"
#include "net_socket/health/verdict.h"
#include "tests/support/deadline.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/health/health_pair.h"
#include "tests/unit/net_socket/health/health_records.h"

namespace tcpx {
namespace {

TEST(HealthStateTest, EveryPairOfStates) {
  const char* const names[kHealthStates] = {"down", "up", "lost", "closed"};
  std::string moves;
  for (int from = 0; from < kHealthStates; ++from) {
    for (int to = 0; to < kHealthStates; ++to) {
      if (MayMove(static_cast<HealthState>(from), static_cast<HealthState>(to))) {
        moves += std::string(names[from]) + ">" + names[to] + " ";
      }
    }
  }
  EXPECT_EQ("down>up down>closed up>down up>lost up>closed lost>down lost>up lost>closed ", moves);
}

TEST_F(HealthTest, TheEndsKnowEachOthersNameAndWhatTheyWaitFor) {
  Deadline deadline;
  while (near_->waits().peer_name().empty() || far_->waits().peer_name().empty()) ASSERT_TRUE(deadline.Yield());
  EXPECT_EQ(ThisProcessName(), near_->waits().peer_name());
  EXPECT_TRUE(near_->socket().SayNow(WaitsNotice(Id(1), "for you")));
  EXPECT_TRUE(far_comm_.Hears("waits: for you")) << far_comm_.Text();
  // Nobody is there to hear it, and nothing else is lost by it.
  EXPECT_TRUE(near_->socket().SayNow(WaitsNotice(Id(2), "for nobody")));
  const int64_t told_ns = MonotonicNanos();
  EXPECT_TRUE(far_->socket().SayNow(WaitsNotice(Id(1), "for me")));
  EXPECT_TRUE(near_comm_.Hears("waits: for me")) << near_comm_.Text();
  EXPECT_GE(near_->socket().heard_ns(), told_ns);
  reactor_.RunSync([&] { near_->CloseInLoop(); });
  EXPECT_FALSE(near_->socket().SayNow(WaitsNotice(Id(1), "too late"))) << "a question that was never sent";
}

// A process that does not know the connection, or expects it only, is there nevertheless, and says so once.
TEST_F(HealthTest, AQuestionForNobodyIsAnswered) {
  reactor_.RunSync([&] {
    near_->JoinInLoop(Id(2), near_comm_.link());
    near_->JoinInLoop(Id(3), near_comm_.link());
    far_->ExpectInLoop(Id(3));
  });
  WaitNews question;
  question.asks = true;
  WaitNews answer;
  answer.who = ThisProcessName();
  const std::string heard = "waits: " + EncodeNews(answer) + ";";
  EXPECT_TRUE(near_->socket().SayNow(WaitsNotice(Id(2), EncodeNews(question))));
  EXPECT_TRUE(near_comm_.Hears(heard));
  EXPECT_TRUE(near_->socket().SayNow(WaitsNotice(Id(3), EncodeNews(question))));
  EXPECT_TRUE(near_comm_.Hears(heard + heard));
  EXPECT_EQ("", far_comm_.Text());
  reactor_.RunSync([&] { far_->LeaveInLoop(Id(3)); });
}

TEST_F(HealthTest, TheEndOfAConnectionReachesItOnly) {
  near_->socket().Say(LeftNotice(Id(2), {}), true);
  near_->socket().Say(LeftNotice(Id(1), {}), true);
  EXPECT_TRUE(far_comm_.Hears("left;"));
  EXPECT_EQ("left;", far_comm_.Text());
}

TEST_F(HealthTest, AReceiverThatLeavesSaysHowFarItCame) {
  near_->socket().Say(LeftNotice(Id(1), {uint64_t{5} << 40, 0, 17}), true);
  EXPECT_TRUE(far_comm_.Hears("left at 5497558138880,0,17;"));
}

TEST_F(HealthTest, ANoticeReachesItsConnectionOnly) {
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(2), "not you", false)));
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(1), "you", false)));
  EXPECT_TRUE(far_comm_.Hears("failed: you;"));
  EXPECT_EQ("failed: you;", far_comm_.Text());
  EXPECT_TRUE(far_->socket().Say(FailureNotice(Id(1), "me too", false)));
  EXPECT_TRUE(near_comm_.Hears("failed: me too;"));
}

TEST_F(HealthTest, APartingIsNoFailure) {
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(1), "it went", true)));
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(1), "it broke", false)));
  EXPECT_TRUE(far_comm_.Hears("failed: it broke;"));
  EXPECT_EQ("parted: it went;failed: it broke;", far_comm_.Text());
}

TEST_F(HealthTest, ManyNoticesArriveThroughASmallSocket) {
  const std::string cause(kCauseBytesMax, 'x');
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(2), cause, false)));
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(1), "last", false)));
  EXPECT_TRUE(far_comm_.Hears("failed: last;"));
}

TEST_F(HealthTest, ACutLinkIsNotTouched) {
  far_comm_.Cut();
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(1), "you", false)));
  reactor_.RunSync([&] { far_->Poll(); });
  EXPECT_EQ("", far_comm_.Text());
}

TEST_F(HealthTest, TheLastOneOutSaysBye) {
  reactor_.RunSync([&] { near_->LeaveInLoop(Id(1)); });
  Deadline deadline;
  bool gone = false;
  while (!gone && deadline.Yield()) reactor_.RunSync([&] { gone = far_hub_.FindAcceptedInLoop(7) == nullptr; });
  EXPECT_TRUE(gone);
  EXPECT_EQ("", far_comm_.Text()) << "an orderly end is no news";
  EXPECT_FALSE(far_->socket().PeerVanished());
  EXPECT_FALSE(near_->socket().Say(FailureNotice(Id(1), "too late", false)));
}

TEST_F(HealthTest, AnotherUserKeepsItOpen) {
  reactor_.RunSync([&] {
    const std::shared_ptr<HealthPeer> again = near_hub_.UseDialledInLoop(0, SocketAddress());
    EXPECT_EQ(near_, again);
    near_->LeaveInLoop(Id(1));
  });
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(1), "still here", false)));
  EXPECT_TRUE(far_comm_.Hears("still here"));
}

// By a socket whose other end is the test's.
class HealthEndTest : public HealthTest {
 protected:
  void SetUp() override {
    HealthTest::SetUp();
    TcpPair pair = MakeTcpPair(0);
    own_ = std::move(pair.a);
    reactor_.RunSync([&] {
      far_hub_.AcceptInLoop(8, std::move(pair.b), {kTimeout});
      far_ = far_hub_.FindAcceptedInLoop(8);
      far_->JoinInLoop(Id(3), far_comm_.link());
    });
  }
  OwnedFd own_;
};

TEST_F(HealthEndTest, AnEndWithoutByeIsADeadProcess) {
  own_.reset();
  EXPECT_TRUE(far_comm_.Hears("ended;"));
  EXPECT_TRUE(far_->socket().PeerVanished());
}

// Its dialler had no answer in time: the connections go on with the later socket, and the end of the earlier one is no
// news.
TEST_F(HealthEndTest, DialledAgainItKeepsItsConnections) {
  TcpPair later = MakeTcpPair(0);
  reactor_.RunSync([&] {
    far_hub_.AcceptInLoop(8, std::move(later.b), {kTimeout});
    EXPECT_EQ(far_, far_hub_.FindAcceptedInLoop(8));
  });
  own_.reset();
  const std::string notice = Notice(3, "by the later one");
  ASSERT_EQ(static_cast<ssize_t>(notice.size()), send(later.a.get(), notice.data(), notice.size(), 0));
  EXPECT_TRUE(far_comm_.Hears("failed: by the later one;"));
  EXPECT_EQ("failed: by the later one;", far_comm_.Text());
}

TEST_F(HealthEndTest, AnEndIsSeenBeforeItsEvent) {
  bool gone = false;
  reactor_.RunSync([&] {
    own_.reset();
    far_hub_.LookInLoop(8);
    gone = far_hub_.FindAcceptedInLoop(8) == nullptr;
  });
  EXPECT_TRUE(gone);
}

TEST_F(HealthEndTest, AResetIsADeath) {
  EXPECT_FALSE(far_->socket().WasReset());
  ASSERT_TRUE(SetResetOnClose(own_.get()).ok());
  own_.reset();
  EXPECT_TRUE(far_comm_.Hears("died: ")) << far_comm_.Text();
  EXPECT_TRUE(far_->socket().WasReset());
  EXPECT_FALSE(far_->socket().PeerVanished());
}

// A peer that says bye and closes while this end says something has died, unless it said that a connection closed.
TEST_F(HealthEndTest, AResetAfterAByeIsADeath) {
  const std::string bye = Record(FrameKind::kBye, "");
  ASSERT_EQ(static_cast<ssize_t>(bye.size()), send(own_.get(), bye.data(), bye.size(), MSG_NOSIGNAL));
  ASSERT_TRUE(SetResetOnClose(own_.get()).ok());
  own_.reset();
  EXPECT_TRUE(far_comm_.Hears("died: ")) << far_comm_.Text();
}

TEST_F(HealthEndTest, AResetAfterAByeThatAnswersAWordOfClosingIsAnEnd) {
  far_->socket().Say(LeftNotice(Id(4), {}), true);
  const std::string bye = Record(FrameKind::kBye, "");
  ASSERT_EQ(static_cast<ssize_t>(bye.size()), send(own_.get(), bye.data(), bye.size(), MSG_NOSIGNAL));
  ASSERT_TRUE(SetResetOnClose(own_.get()).ok());
  own_.reset();
  Deadline deadline;
  bool gone = false;
  while (!gone && deadline.Yield()) reactor_.RunSync([&] { gone = far_hub_.FindAcceptedInLoop(8) == nullptr; });
  EXPECT_TRUE(gone);
  EXPECT_EQ("", far_comm_.Text());
}

TEST_F(HealthEndTest, GarbageIsADeath) {
  const std::string garbage(kHeaderBytes, '\x20');
  ASSERT_EQ(static_cast<ssize_t>(garbage.size()), send(own_.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL));
  EXPECT_TRUE(far_comm_.Hears("died: ")) << far_comm_.Text();
}

TEST_F(HealthEndTest, ANoticeBeforeTheEndIsHeardFirst) {
  const std::string notice = Notice(3, "the reason");
  ASSERT_EQ(static_cast<ssize_t>(notice.size()), send(own_.get(), notice.data(), notice.size(), MSG_NOSIGNAL));
  own_.reset();
  EXPECT_TRUE(far_comm_.Hears("ended;"));
  EXPECT_EQ("failed: the reason;ended;", far_comm_.Text());
}

// The peer's dialler may have failed before this end has heard that it is up.
TEST_F(HealthEndTest, WhatIsSaidOfAnExpectedConnectionIsReportedWhenItJoins) {
  reactor_.RunSync([&] { far_->ExpectInLoop(Id(4)); });
  std::string said = Notice(5, "nobody") + Notice(4, "too early");
  for (int i = 0; i < 100; ++i) said += Notice(4, "a flood");
  ASSERT_EQ(static_cast<ssize_t>(said.size()), send(own_.get(), said.data(), said.size(), MSG_NOSIGNAL));
  const std::string last = Notice(3, "all heard");
  ASSERT_EQ(static_cast<ssize_t>(last.size()), send(own_.get(), last.data(), last.size(), MSG_NOSIGNAL));
  ASSERT_TRUE(far_comm_.Hears("failed: all heard;"));
  Listener late;
  reactor_.RunSync([&] { far_->JoinInLoop(Id(4), late.link()); });
  EXPECT_EQ("failed: too early;failed: a flood;", late.Text());
  reactor_.RunSync([&] { far_->LeaveInLoop(Id(4)); });
  EXPECT_TRUE(far_->used_in_loop()) << "by the other one";
  reactor_.RunSync([&] { far_->LeaveInLoop(Id(3)); });
  EXPECT_FALSE(far_->used_in_loop());
}

TEST_F(HealthEndTest, AnExpectedConnectionHearsOfTheEndWhenItJoins) {
  reactor_.RunSync([&] {
    for (uint8_t id : {4, 5}) far_->ExpectInLoop(Id(id));
  });
  own_.reset();
  ASSERT_TRUE(far_comm_.Hears("ended;"));
  Listener late;
  reactor_.RunSync([&] {
    far_->JoinInLoop(Id(4), late.link());
    far_->LeaveInLoop(Id(5));  // It was given up.
  });
  EXPECT_EQ("ended;", late.Text());
  reactor_.RunSync([&] {
    for (uint8_t id : {3, 4}) far_->LeaveInLoop(Id(id));
  });
  EXPECT_FALSE(far_->used_in_loop());
}

TEST_F(HealthEndTest, AnExpectedConnectionHearsNothingOfAnOrderlyEnd) {
  reactor_.RunSync([&] { far_->ExpectInLoop(Id(4)); });
  const std::string bye = Record(FrameKind::kBye, "");
  ASSERT_EQ(static_cast<ssize_t>(bye.size()), send(own_.get(), bye.data(), bye.size(), MSG_NOSIGNAL));
  own_.reset();
  Deadline deadline;
  bool gone = false;
  while (!gone && deadline.Yield()) reactor_.RunSync([&] { gone = far_hub_.FindAcceptedInLoop(8) == nullptr; });
  ASSERT_TRUE(gone);
  Listener late;
  reactor_.RunSync([&] { far_->JoinInLoop(Id(4), late.link()); });
  EXPECT_EQ("", late.Text());
}

class Dial final : public HealthWaiters::Waiter {
 public:
  void DialHealthInLoop() override { ++dials; }
  void HealthUpInLoop() override { ++ups; }
  int dials = 0;
  int ups = 0;
};

TEST_F(HealthTest, OneDialsForAllAndTheNextTakesOver) {
  reactor_.RunSync([&] {
    auto health = near_hub_.UseDialledInLoop(1, SocketAddress());
    Dial one, two, three;
    health->waiters().AwaitInLoop(&one);
    health->waiters().AwaitInLoop(&two);
    EXPECT_EQ(1, one.dials);
    EXPECT_EQ(0, two.dials);
    health->waiters().GiveUpInLoop(&one);
    EXPECT_EQ(1, two.dials);
    TcpPair pair = MakeTcpPair(0);
    health->UpInLoop(std::move(pair.a), {kTimeout});
    health->waiters().AwaitInLoop(&three);
    EXPECT_EQ(0, one.ups);
    EXPECT_EQ(1, two.ups);
    EXPECT_EQ(1, three.ups);
    EXPECT_EQ(0, three.dials);
    health->UnuseInLoop();
  });
}

int OptionOf(int fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof(value);
  EXPECT_EQ(0, getsockopt(fd, level, option, &value, &length));
  return value;
}

TEST(KeepAliveTest, TheWholeTakesTheTimeout) {
  TcpPair pair = MakeTcpPair(0);
  const int fd = pair.a.get();
  for (const int seconds : {2, 3, 4, 5, 10, 30, 60, 3600}) {
    ASSERT_TRUE(SetKeepAlive(fd, seconds * kSecond).ok());
    const int idle = OptionOf(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    const int interval = OptionOf(fd, IPPROTO_TCP, TCP_KEEPINTVL);
    const int count = OptionOf(fd, IPPROTO_TCP, TCP_KEEPCNT);
    EXPECT_EQ(1, OptionOf(fd, SOL_SOCKET, SO_KEEPALIVE));
    EXPECT_GE(count, 1);
    EXPECT_LE(idle + interval * count, seconds);
    EXPECT_GT(idle + interval * (count + 1), seconds);
  }
}

// TCPX_ENCRYPT is on, and the handshake left no keys.
TEST_F(HealthTest, ASocketWithoutKeysIsNotUsed) {
  HealthSettings settings{kTimeout};
  settings.encrypts = true;
  TcpPair dialled = MakeTcpPair(0);
  TcpPair accepted = MakeTcpPair(0);
  reactor_.RunSync([&] {
    near_hub_.UseDialledInLoop(1, SocketAddress())->UpInLoop(std::move(dialled.a), settings);
    far_hub_.AcceptInLoop(8, std::move(accepted.a), settings);
    EXPECT_NE(HealthState::kUp, near_hub_.UseDialledInLoop(1, SocketAddress())->socket().state());
    EXPECT_NE(HealthState::kUp, far_hub_.FindAcceptedInLoop(8)->socket().state());
  });
  for (const OwnedFd* end : {&dialled.b, &accepted.b}) {
    char byte;
    ssize_t got = -1;
    for (Deadline deadline; (got = recv(end->get(), &byte, 1, 0)) < 0 && errno == EAGAIN && deadline.Yield();) {
    }
    EXPECT_EQ(0, got) << "it was to be closed, and nothing said on it";
  }
}

}  // namespace
}  // namespace tcpx
