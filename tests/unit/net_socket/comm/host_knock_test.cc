// Whether hosts answer a connect: what counts as an answer, for how long, and how few sockets it takes.
#include "net_socket/comm/host_knock.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <string>

#include "common/address.h"
#include "common/clock.h"
#include "common/fd.h"
#include "net_socket/comm/tuning.h"
#include "tests/support/deadline.h"
#include "tests/support/seed.h"

namespace tcpx {
namespace {

using Way = HostKnocks::Way;

SocketAddress At(const std::string& host, uint16_t port = 0) {
  auto address = SocketAddress::Parse(host);
  EXPECT_TRUE(address.ok()) << address.status();
  SocketAddress at = address.value_or(SocketAddress());
  if (port != 0) at.set_port(port);
  return at;
}

// Sockets that connect, or have.
int OpenSockets() {
  int count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    int type = 0;
    socklen_t length = sizeof(type);
    count += getsockopt(atoi(entry->d_name), SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
  }
  closedir(folder);
  return count;
}

// A port on all of this host's addresses, which listens only if asked to. The clock is the test's.
class HostKnocksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(fd_.valid());
    const SocketAddress any = At("0.0.0.0");
    ASSERT_EQ(0, bind(fd_.get(), any.sockaddr(), any.length()));
    const auto local = LocalAddress(fd_.get());
    ASSERT_TRUE(local.ok()) << local.status();
    port_ = local->port();
  }

  // From now on nothing answers: of a backlog that is full the kernel drops each connect.
  void FallSilent() {
    ASSERT_EQ(0, listen(fd_.get(), 0));
    const SocketAddress to = At("127.0.0.1", port_);
    crowd_.reset(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    connect(crowd_.get(), to.sockaddr(), to.length());
    pollfd full{fd_.get(), POLLIN, 0};
    ASSERT_EQ(1, poll(&full, 1, 60'000 * TimeScale()));
  }

  Way To(const std::string& host = "127.0.0.1", bool listens = true) const {
    return {At("127.0.0.1"), At(host, port_), listens};
  }
  bool AnswersInTime(const Way& way, int64_t since_ns) {
    Deadline deadline;
    while (!knocks_.Answers(way, since_ns, now_ns_)) {
      if (!deadline.Yield()) return false;
    }
    return true;
  }

  OwnedFd fd_;
  uint16_t port_ = 0;
  OwnedFd crowd_;
  int64_t now_ns_ = 1000 * kSecond;
  HostKnocks knocks_;
};

TEST_F(HostKnocksTest, OneThatTakesTheConnectAnswers) {
  ASSERT_EQ(0, listen(fd_.get(), 4));
  EXPECT_TRUE(AnswersInTime(To(), now_ns_));
  EXPECT_TRUE(knocks_.Answers(To(), now_ns_, now_ns_ + kSecond));
}

TEST_F(HostKnocksTest, OneThatRefusesAnswersToo) { EXPECT_TRUE(AnswersInTime(To(), now_ns_)); }

// An answer of before says nothing of a silence that has begun after it.
TEST_F(HostKnocksTest, AnAnswerIsOfOneSilence) {
  EXPECT_TRUE(AnswersInTime(To(), now_ns_));
  FallSilent();
  const int64_t since_ns = now_ns_ + kSecond;
  now_ns_ += 2 * kSecond;
  EXPECT_FALSE(knocks_.Answers(To(), since_ns, now_ns_));
  EXPECT_TRUE(knocks_.Answers(To(), since_ns - kSecond, now_ns_));
}

// Neither an address that is not ours nor one without a route is an answer, however often it is looked at.
TEST_F(HostKnocksTest, WhatCannotBeAskedNeverAnswers) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(knocks_.Answers({At("192.0.2.1"), At("127.0.0.1", port_), true}, now_ns_, now_ns_));
    EXPECT_FALSE(knocks_.Answers({At("127.0.0.1"), At("255.255.255.255:9"), true}, now_ns_, now_ns_));
  }
  EXPECT_TRUE(AnswersInTime(To(), now_ns_)) << "a question that failed blocks the next";
}

// Each connection of a host that dialled knows another port of it.
TEST_F(HostKnocksTest, ManyConnectionsToASilentHostAskOnce) {
  FallSilent();
  const int before = OpenSockets();
  EXPECT_FALSE(knocks_.Answers(To("127.0.0.1", false), now_ns_, now_ns_));
  for (int i = 1; i < 4000; ++i) {
    const Way way{At("127.0.0.1"), At("127.0.0.1", static_cast<uint16_t>(i)), false};
    EXPECT_FALSE(knocks_.Answers(way, now_ns_, now_ns_));
  }
  EXPECT_EQ(before + 1, OpenSockets());
}

TEST_F(HostKnocksTest, ManySilentHostsAreAskedByTurns) {
  FallSilent();
  const int before = OpenSockets();
  const auto ask_all = [&] {
    for (int i = 1; i < 200; ++i) knocks_.Answers(To("127.0.1." + std::to_string(i)), now_ns_, now_ns_);
    return OpenSockets() - before;
  };
  EXPECT_EQ(static_cast<int>(tuning::kKnocksAtOnce), ask_all());
  EXPECT_EQ(static_cast<int>(tuning::kKnocksAtOnce), ask_all());
  crowd_.reset();
  fd_.reset();  // From now on all refuse, but those that were asked have not heard it.
  now_ns_ += tuning::kKnockPatienceNs;
  const int64_t since_ns = now_ns_ - tuning::kKnockPatienceNs;
  EXPECT_TRUE(AnswersInTime(To("127.0.1.9"), since_ns)) << "those that were asked first block it";
}

TEST_F(HostKnocksTest, AQuestionWithoutAnAnswerIsGivenUp) {
  FallSilent();
  const int before = OpenSockets();
  EXPECT_FALSE(knocks_.Answers(To(), now_ns_, now_ns_));
  knocks_.Look(now_ns_ + tuning::kKnockPatienceNs - 1);
  EXPECT_EQ(before + 1, OpenSockets());
  knocks_.Look(now_ns_ + tuning::kKnockPatienceNs);
  EXPECT_EQ(before, OpenSockets());
  const int64_t since_ns = now_ns_;
  now_ns_ += tuning::kKnockAgainNs - 1;
  EXPECT_FALSE(knocks_.Answers(To(), since_ns, now_ns_));
  EXPECT_EQ(before, OpenSockets()) << "others have no turn";
  now_ns_ += 1;
  EXPECT_FALSE(knocks_.Answers(To(), since_ns, now_ns_));
  EXPECT_EQ(before + 1, OpenSockets());
}

}  // namespace
}  // namespace tcpx
