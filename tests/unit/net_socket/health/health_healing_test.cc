// A health socket that is lost: who is asked to dial, what is reported afterwards, and when it is given up.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/clock.h"
#include "common/fd.h"
#include "net_socket/health/health_peer.h"
#include "net_socket/health/verdict.h"
#include "tests/support/deadline.h"
#include "tests/support/kept_log.h"
#include "tests/support/tcp_pair.h"
#include "tests/unit/net_socket/health/health_pair.h"
#include "tests/unit/net_socket/health/health_records.h"

namespace tcpx {
namespace {

const std::string kGarbage(size_t{2} * kHeaderBytes, '\xff');

// The user that is asked to dial again.
class Redialler final : public HealthRedialler {
 public:
  void DialInLoop(std::shared_ptr<HealthPeer> health) override {
    health_ = std::move(health);
    ++dials;
  }
  void HaltInLoop() override { health_.reset(); }
  int dials = 0;

 private:
  std::shared_ptr<HealthPeer> health_;
};

// Both ends heal.
class HealingHealthTest : public HealthTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reactor_.Start().ok());
    reactor_.RunSync([&] {
      near_ = near_hub_.UseDialledInLoop(0, SocketAddress());
      Join(7);
      far_ = far_hub_.FindAcceptedInLoop(7);
      near_->JoinInLoop(Id(1), near_comm_.link(), redialler_);
      near_->UnuseInLoop();  // the dial's own use
      far_->JoinInLoop(Id(1), far_comm_.link());
    });
  }
  // A socket between the two.
  void Join(uint64_t tag) {
    TcpPair pair = MakeTcpPair(0);
    near_fd_ = pair.a.get();
    far_fd_ = pair.b.get();
    far_hub_.AcceptInLoop(tag, std::move(pair.b), settings_);
    near_->UpInLoop(std::move(pair.a), settings_);
  }
  void Break() {
    ASSERT_EQ(0, shutdown(near_fd_, SHUT_RDWR));
    const Deadline deadline;
    for (bool lost = false; !lost;) {
      ASSERT_TRUE(deadline.Yield());
      reactor_.RunSync([&] {
        lost = near_->socket().state() == HealthState::kLost && far_->socket().state() == HealthState::kLost;
      });
    }
  }

  // A socket to a peer that reads nothing.
  OwnedFd JoinDeaf() {
    TcpPair pair = MakeTcpPair(4096);
    near_fd_ = pair.a.get();
    reactor_.RunSync([&] { near_->UpInLoop(std::move(pair.a), settings_); });
    return std::move(pair.b);
  }
  void AwaitNear(HealthState state) {
    const Deadline deadline;
    for (bool there = false; !there;) {
      ASSERT_TRUE(deadline.Yield());
      reactor_.RunSync([&] { there = near_->socket().state() == state; });
    }
  }

  const HealthSettings settings_{kTimeout, true, 600 * kSecond, kSecond};
  const std::shared_ptr<Redialler> redialler_ = std::make_shared<Redialler>();
  int near_fd_ = -1;
  int far_fd_ = -1;
};

TEST_F(HealingHealthTest, WhatIsSaidMeanwhileIsReportedAfterwards) {
  ASSERT_NO_FATAL_FAILURE(Break());
  EXPECT_FALSE(near_->socket().Say(FailureNotice(Id(1), "later", false))) << "nobody hears it now";
  EXPECT_FALSE(far_->socket().PeerVanished());
  EXPECT_EQ("", near_comm_.Text() + far_comm_.Text());
  reactor_.RunSync([&] {
    EXPECT_EQ(1, redialler_->dials);
    Join(7);
  });
  EXPECT_TRUE(far_comm_.Hears("failed: later;"));
  EXPECT_EQ("failed: later;", far_comm_.Text());
  EXPECT_TRUE(far_->socket().Say(FailureNotice(Id(1), "now", false)));
  EXPECT_TRUE(near_comm_.Hears("failed: now;"));
}

// A firewall that resets it at once is not dialled a hundred times a second.
TEST_F(HealingHealthTest, OneThatNeverLastsIsDialledEverMoreRarely) {
  for (int i = 0; i < 6; ++i) {
    ASSERT_NO_FATAL_FAILURE(Break());
    reactor_.RunSync([&] { Join(7); });
  }
  reactor_.RunSync([&] {
    Arbiter& arbiter = near_->redials_in_loop().arbiter();
    int64_t now_ns = MonotonicNanos();
    for (int64_t at_ns = 0; (at_ns = arbiter.TakeFirstDial(0, now_ns)) != 0;) now_ns = at_ns;
    EXPECT_GE(arbiter.TakeFirstDial(0, now_ns) - now_ns, 400 * kMillisecond);
  });
}

TEST_F(HealingHealthTest, ARefusalIsTheEnd) {
  ASSERT_NO_FATAL_FAILURE(Break());
  reactor_.RunSync([&] { near_->RefusedInLoop(redialler_.get()); });
  EXPECT_EQ("ended;", near_comm_.Text());
  EXPECT_TRUE(near_->socket().PeerVanished());
  EXPECT_FALSE(near_->socket().Say(FailureNotice(Id(1), "to nobody", false)));
}

// One dialler has found that out for all of them.
TEST_F(HealingHealthTest, AProcessThatIsGoneIsReportedToAll) {
  Listener other;
  const auto second = std::make_shared<Redialler>();
  reactor_.RunSync([&] { near_->JoinInLoop(Id(2), other.link(), second); });
  ASSERT_NO_FATAL_FAILURE(Break());
  reactor_.RunSync([&] {
    EXPECT_EQ(1, redialler_->dials + second->dials);
    near_->GoneInLoop(redialler_->dials == 1 ? redialler_.get() : second.get());
    EXPECT_EQ(1, redialler_->dials + second->dials) << "nobody else asks again";
    other.Cut();
  });
  EXPECT_EQ("ended;", near_comm_.Text());
  EXPECT_EQ("ended;", other.Text());
}

// Its peer has closed that one: the process is there.
TEST_F(HealingHealthTest, NoneIsGoneWhileALaneOfAnyIsUp) {
  Listener standing;
  standing.up = true;
  far_comm_.gone = true;
  reactor_.RunSync([&] { far_->JoinInLoop(Id(2), standing.link()); });
  ASSERT_NO_FATAL_FAILURE(Break());
  const Deadline deadline;
  while (far_comm_.asked < 3) {
    ASSERT_EQ("", far_comm_.Text() + standing.Text());
    ASSERT_TRUE(deadline.Yield());
  }
  standing.up = false;
  EXPECT_TRUE(standing.Hears("ended;"));
  EXPECT_TRUE(far_comm_.Hears("ended;"));
  reactor_.RunSync([&] { standing.Cut(); });
}

// Between two other devices: a path that refuses is no proof that the process is gone.
TEST_F(HealingHealthTest, NoneIsGoneWhileAnotherSocketOfItsProcessIsUp) {
  far_comm_.gone = true;
  std::shared_ptr<HealthPeer> other;
  int other_fd = -1;
  reactor_.RunSync([&] {
    TcpPair pair = MakeTcpPair(0);
    other_fd = pair.a.get();
    far_hub_.AcceptInLoop(8, std::move(pair.b), settings_);
    far_hub_.FindAcceptedInLoop(8)->UseInLoop();
    other = near_hub_.UseDialledInLoop(1, SocketAddress());
    other->UpInLoop(std::move(pair.a), settings_);
  });
  const Deadline deadline;
  for (bool known = false; !known;) {
    ASSERT_TRUE(deadline.Yield());
    reactor_.RunSync([&] {
      known = !far_->waits().process().empty() && !far_hub_.FindAcceptedInLoop(8)->waits().process().empty();
    });
  }
  ASSERT_NO_FATAL_FAILURE(Break());
  const int asked = far_comm_.asked;
  while (far_comm_.asked < asked + 3) {
    ASSERT_EQ("", far_comm_.Text());
    ASSERT_TRUE(deadline.Yield());
  }
  reactor_.RunSync([&] { EXPECT_TRUE(far_hub_.ProcessIsUpInLoop(far_.get())); });
  ASSERT_EQ(0, shutdown(other_fd, SHUT_RDWR));
  EXPECT_TRUE(far_comm_.Hears("ended;"));
}

// As in two containers with the same host name, whose processes count from 1: the one that lives says nothing of the
// other.
TEST_F(HealingHealthTest, AProcessOfTheSameNameIsAnother) {
  far_comm_.gone = true;
  TcpPair pair = MakeTcpPair(0);
  WaitNews namesake;
  namesake.who = ThisProcessName();
  namesake.process = ThisProcessNumber() + 1;
  const std::string said = WaitsNotice(ConnectionId{}, EncodeNews(namesake));
  ASSERT_EQ(static_cast<ssize_t>(said.size()), send(pair.a.get(), said.data(), said.size(), MSG_NOSIGNAL));
  reactor_.RunSync([&] {
    far_hub_.AcceptInLoop(8, std::move(pair.b), settings_);
    far_hub_.FindAcceptedInLoop(8)->UseInLoop();
  });
  const Deadline deadline;
  for (bool known = false; !known;) {
    ASSERT_TRUE(deadline.Yield());
    reactor_.RunSync([&] {
      HealthPeer& other = *far_hub_.FindAcceptedInLoop(8);
      known = !far_->waits().process().empty() && far_->waits().peer_name() == other.waits().peer_name();
    });
  }
  reactor_.RunSync([&] { EXPECT_FALSE(far_hub_.AnotherIsUpInLoop(far_.get())); });
  ASSERT_NO_FATAL_FAILURE(Break());
  EXPECT_TRUE(far_comm_.Hears("ended;"));
}

// A silence that was waited for on the health socket is not waited for again.
TEST_F(HealingHealthTest, AHostThatIsHeardNoMoreIsGone) {
  near_comm_.heard = true;
  const OwnedFd deaf = JoinDeaf();
  reactor_.RunSync([&] {
    FillSocket(near_fd_);
    const int soon_ms = 1;
    EXPECT_EQ(0, setsockopt(near_fd_, IPPROTO_TCP, TCP_USER_TIMEOUT, &soon_ms, sizeof(soon_ms)));
  });
  ASSERT_NO_FATAL_FAILURE(AwaitNear(HealthState::kLost));
  EXPECT_EQ("", near_comm_.Text());
  near_comm_.heard = false;
  EXPECT_TRUE(near_comm_.Hears("died: "));
}

TEST_F(HealingHealthTest, WhatWaitedForALostSocketKeepsNothingBack) {
  const OwnedFd deaf = JoinDeaf();
  for (int i = 0; i < 4000; ++i) near_->socket().Say(FailureNotice(Id(1), std::string(512, 'x'), false));
  ASSERT_EQ(0, shutdown(near_fd_, SHUT_RDWR));
  ASSERT_NO_FATAL_FAILURE(AwaitNear(HealthState::kLost));
  near_->socket().Say(FailureNotice(Id(1), "later", false));
  reactor_.RunSync([&] { Join(7); });
  EXPECT_TRUE(far_comm_.Hears("failed: later;"));
}

// More than are kept were said while there was no socket. Once those are heard there is room again.
TEST_F(HealingHealthTest, IsNotMuteOnceAllIsHeard) {
  ASSERT_NO_FATAL_FAILURE(Break());
  for (int i = 0; i < 17000; ++i) near_->socket().Say(FailureNotice(Id(1), "x", false));
  reactor_.RunSync([&] { Join(7); });
  const Deadline deadline;
  while (far_comm_.Text().find("later") == std::string::npos) {
    ASSERT_TRUE(deadline.Yield());
    near_->socket().Say(FailureNotice(Id(1), "later", false));
  }
}

// A caller that learns that a notice is out tells its peer nothing more.
TEST_F(HealingHealthTest, WhatIsDroppedIsNotSaid) {
  const OwnedFd deaf = JoinDeaf();
  int said = 0;
  while (said < 17000 && near_->socket().Say(FailureNotice(Id(1), std::string(512, 'x'), false))) ++said;
  EXPECT_GT(said, 1000);
  EXPECT_LT(said, 17000);
}

TEST_F(HealingHealthTest, WhatIsAskedOfABusyPeerArrives) {
  const OwnedFd deaf = JoinDeaf();
  size_t due = FillSocket(near_fd_);
  EXPECT_TRUE(near_->socket().SayNow(SilentNotice(Id(1), 3), HealthSocket::Passing::kQuestion));
  due += Record(FrameKind::kSilent, std::string(sizeof(ConnectionId) + 2, '\0')).size();
  const Deadline deadline;
  for (size_t came = 0; came < due; came += ReadAvailable(deaf.get()).size()) {
    ASSERT_TRUE(deadline.Yield()) << came << " of " << due;
  }
}

// However much one peer says, the reactor's others have their turn.
TEST_F(HealingHealthTest, ATurnIsBounded) {
  size_t heard = 0;
  reactor_.RunSync([&] {
    for (int i = 0; i < 1000; ++i) near_->socket().Say(FailureNotice(Id(1), std::string(512, 'x'), false));
    far_->OnEvents(0);
    heard = far_comm_.Text().size();
  });
  EXPECT_GT(heard, 0u);
  EXPECT_LE(heard, 16u * 4096u);
  EXPECT_TRUE(near_->socket().Say(FailureNotice(Id(1), "the last", false)));
  EXPECT_TRUE(far_comm_.Hears("failed: the last;"));
}

// What nobody honest says is the end, at either reader: another socket heals it no more.
TEST_F(HealingHealthTest, GarbageIsNotForgottenWhenItIsDialledAgain) {
  reactor_.RunSync([&] {
    EXPECT_TRUE(WriteAll(near_fd_, kGarbage));
    far_hub_.LetGoInLoop(7);
  });
  EXPECT_TRUE(far_comm_.Hears("died: ")) << far_comm_.Text();
}

TEST_F(HealingHealthTest, GarbageIsNotForgottenWhenAnotherSocketIsUp) {
  TcpPair pair = MakeTcpPair(0);
  reactor_.RunSync([&] {
    EXPECT_TRUE(WriteAll(far_fd_, kGarbage));
    near_->UpInLoop(std::move(pair.a), settings_);
    EXPECT_NE(HealthState::kUp, near_->socket().state());
  });
  EXPECT_TRUE(near_comm_.Hears("died: ")) << near_comm_.Text();
}

TEST_F(HealingHealthTest, GarbageThatAPollFindsIsReported) {
  reactor_.RunSync([&] {
    EXPECT_TRUE(WriteAll(far_fd_, kGarbage));
    near_->Poll();
  });
  EXPECT_TRUE(near_comm_.Hears("died: ")) << near_comm_.Text();
}

TEST_F(HealingHealthTest, AByeIsNotHealed) {
  reactor_.RunSync([&] { near_->LeaveInLoop(Id(1)); });
  const Deadline deadline;
  bool gone = false;
  while (!gone && deadline.Yield()) reactor_.RunSync([&] { gone = far_hub_.FindAcceptedInLoop(7) == nullptr; });
  EXPECT_TRUE(gone);
  EXPECT_EQ(0, redialler_->dials);
  EXPECT_EQ("", far_comm_.Text());
}

// Somebody who has a ticket comes again and again, as another process each time. A peer's lines are its own.
TEST_F(HealingHealthTest, LinesOfStrangersShareALimit) {
  KeptLog log;
  const int64_t began_ns = MonotonicNanos();
  constexpr uint8_t kStrangers = 24;
  std::vector<std::unique_ptr<Listener>> comms;
  for (uint8_t number = 0; number < kStrangers; ++number) {
    const uint64_t tag = 100 + number;
    TcpPair pair = MakeTcpPair(0);
    comms.push_back(std::make_unique<Listener>());
    comms.back()->known = false;
    std::shared_ptr<HealthPeer> stranger;
    reactor_.RunSync([&] {
      far_hub_.AcceptInLoop(tag, std::move(pair.b), settings_);
      stranger = far_hub_.FindAcceptedInLoop(tag);
      stranger->JoinInLoop(Id(number), comms.back()->link());
    });
    pair.a.reset();
    const Deadline deadline;
    while (stranger->socket().state() != HealthState::kLost) ASSERT_TRUE(deadline.Yield());
  }
  const auto count = [&log] {
    int64_t lines = 0;
    for (const std::string& line : log.Lines()) lines += absl::StrContains(line, "is lost and will be waited for");
    return lines;
  };
  EXPECT_GE(count(), 1);
  EXPECT_LE(count(), (MonotonicNanos() - began_ns) / kSecond + 2);
  const int64_t before = count();
  ASSERT_NO_FATAL_FAILURE(Break());
  EXPECT_EQ(before + 1, count());
}

}  // namespace
}  // namespace tcpx
