// Whether a host answers a connect: what counts as an answer, and that an error is not taken for one later.
#include "net_socket/comm/host_knock.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/address.h"
#include "common/fd.h"
#include "tests/support/deadline.h"

namespace tcpx {
namespace {

SocketAddress At(const char* host) {
  auto address = SocketAddress::Parse(host);
  EXPECT_TRUE(address.ok()) << address.status();
  return address.value_or(SocketAddress());
}

bool AnswersInTime(HostKnock* knock, const SocketAddress& to) {
  Deadline deadline;
  while (!knock->Answers(At("127.0.0.1"), to)) {
    if (!deadline.Yield()) return false;
  }
  return true;
}

// On an address of its own, which listens only if asked to.
class HostKnockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_.reset(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(fd_.valid());
    const SocketAddress any = At("127.0.0.1");
    ASSERT_EQ(0, bind(fd_.get(), any.sockaddr(), any.length()));
    to_ = LocalAddress(fd_.get()).value_or(SocketAddress());
  }
  OwnedFd fd_;
  SocketAddress to_;
  HostKnock knock_;
};

TEST_F(HostKnockTest, OneThatTakesTheConnectAnswersUntilForgotten) {
  ASSERT_EQ(0, listen(fd_.get(), 4));
  EXPECT_TRUE(AnswersInTime(&knock_, to_));
  EXPECT_TRUE(knock_.Answers(At("127.0.0.1"), to_));
  knock_.Forget();
  EXPECT_TRUE(AnswersInTime(&knock_, to_));
}

TEST_F(HostKnockTest, OneThatRefusesAnswersToo) {
  EXPECT_TRUE(AnswersInTime(&knock_, to_));
  EXPECT_TRUE(knock_.Answers(At("127.0.0.1"), to_));
}

// Neither an address that is not ours nor one without a way is an answer, however often it is looked at.
TEST_F(HostKnockTest, WhatCannotBeAskedNeverAnswers) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(knock_.Answers(At("192.0.2.1"), to_));
    EXPECT_FALSE(knock_.Answers(At("127.0.0.1"), At("255.255.255.255:9")));
  }
  EXPECT_TRUE(AnswersInTime(&knock_, to_)) << "a question that failed is in the way of the next";
}

}  // namespace
}  // namespace tcpx
