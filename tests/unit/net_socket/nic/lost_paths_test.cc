// Who hears of an interface that goes and comes, and who is asked to try a path that was lost.
#include "net_socket/nic/lost_paths.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "common/clock.h"
#include "tests/support/deadline.h"
#include "tests/support/own_network.h"

namespace tcpx {
namespace {

class FakeUser final : public LostPaths::User {
 public:
  void NicsChangedInLoop() override { ++changes; }
  bool TryPathInLoop(const LanePath&) override {
    ++asked;
    return waits;
  }
  void PathServesInLoop(const LanePath&) override { ++served; }

  std::atomic<int> changes{0};
  std::atomic<int> asked{0};
  std::atomic<int> served{0};
  std::atomic<bool> waits{true};
};

class LostPathsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(reactor_.Start().ok());
    nic_.interface.name = "lo";
    nic_.interface.address = *SocketAddress::Parse("127.0.0.1:0");
    path_ = {&nic_, *SocketAddress::Parse("127.0.0.1:7")};
  }
  void TearDown() override {
    reactor_.RequestStop();
    reactor_.Join();
  }
  template <typename Function>
  void InLoop(Function function) {
    ASSERT_TRUE(reactor_.RunSync(function));
  }
  template <typename Condition>
  void Await(Condition condition) {
    const Deadline deadline(60);
    while (!condition()) ASSERT_TRUE(deadline.Yield());
  }
  bool Out() {
    bool out = false;
    EXPECT_TRUE(reactor_.RunSync([&] { out = paths_.OutInLoop(nic_); }));
    return out;
  }

  Reactor reactor_;
  LostPaths paths_{&reactor_};
  Nic nic_;
  LanePath path_;
  FakeUser first_;
  FakeUser second_;
};

// One at a time, in turn; a dialler without one that waits is not asked again.
TEST_F(LostPathsTest, AsksUntilItIsFoundAndTellsAll) {
  FakeUser third;
  third.waits = false;
  InLoop([&] {
    for (FakeUser* user : {&first_, &second_, &third}) {
      paths_.JoinInLoop(user, {&nic_});
      paths_.WaitInLoop(user, path_);
      paths_.WaitInLoop(user, path_);
    }
  });
  Await([&] { return first_.asked > 0 && second_.asked > 0 && third.asked > 0; });
  Await([&] { return first_.asked > 1 || second_.asked > 1; });
  EXPECT_EQ(1, third.asked);
  InLoop([&] { paths_.FoundInLoop(path_); });
  EXPECT_EQ(1, first_.served);
  EXPECT_EQ(1, second_.served);
  EXPECT_EQ(0, third.served);
  InLoop([&] {
    paths_.FoundInLoop(path_);
    for (FakeUser* user : {&first_, &second_, &third}) paths_.LeaveInLoop(user);
  });
  EXPECT_EQ(1, first_.served);
}

TEST_F(LostPathsTest, WhoHasLeftIsNotAsked) {
  InLoop([&] {
    paths_.JoinInLoop(&first_, {&nic_});
    paths_.JoinInLoop(&second_, {&nic_});
    paths_.WaitInLoop(&first_, path_);
    paths_.WaitInLoop(&second_, path_);
    paths_.LeaveInLoop(&first_);
  });
  Await([&] { return second_.asked > 1; });
  EXPECT_EQ(0, first_.asked);
  InLoop([&] { paths_.LeaveInLoop(&second_); });
}

bool SetLoopback(bool up) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = static_cast<short>(IFF_LOOPBACK | (up ? IFF_UP : 0));
  const bool set = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return set;
}

// While it is out nobody is asked; when it is back, at once.
TEST_F(LostPathsTest, AnInterfaceGoesAndComes) {
  if (!InOwnNetwork()) GTEST_SKIP() << "no network of its own";
  InLoop([&] { paths_.JoinInLoop(&first_, {&nic_}); });
  EXPECT_FALSE(Out());
  for (int round = 1; round <= 2; ++round) {
    ASSERT_TRUE(SetLoopback(false));
    Await([&] { return first_.changes == 2 * round - 1; });
    EXPECT_TRUE(Out());
    first_.asked = 0;
    InLoop([&] { paths_.WaitInLoop(&first_, path_); });
    ASSERT_TRUE(SetLoopback(true));
    Await([&] { return first_.changes == 2 * round && first_.asked > 0; });
    EXPECT_FALSE(Out());
    InLoop([&] { paths_.FoundInLoop(path_); });
    EXPECT_EQ(round, first_.served);
  }
  InLoop([&] { paths_.LeaveInLoop(&first_); });
}

TEST_F(LostPathsTest, OneThatIsOutFromTheBeginning) {
  if (!InOwnNetwork()) GTEST_SKIP() << "no network of its own";
  nic_.interface.address = *SocketAddress::Parse("10.9.9.9:0");
  InLoop([&] { paths_.JoinInLoop(&first_, {&nic_}); });
  EXPECT_TRUE(Out());
  EXPECT_EQ(1, first_.changes);
  InLoop([&] { paths_.LeaveInLoop(&first_); });
  EXPECT_FALSE(Out());
}

}  // namespace
}  // namespace tcpx
