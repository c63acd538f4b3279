// Another socket under the number of one that has died: nothing that came is lost, and the peer learns of it.
#include "net_socket/engine/socket_swap.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>
#include <utility>

#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

TEST(SocketSwapTest, FreezingBringsAllThatHasCome) {
  TcpPair pair = MakeTcpPair();
  const std::string sent(100000, 'x');
  ASSERT_TRUE(WriteAll(pair.a.get(), sent));
  std::string rest = "before ";
  FreezeSocket(pair.b.get(), &rest);
  EXPECT_EQ("before " + sent, rest);
}

TEST(SocketSwapTest, FreezingBringsWhatCameBeforeAReset) {
  TcpPair pair = MakeTcpPair();
  ASSERT_TRUE(WriteAll(pair.a.get(), "some words"));
  ResetSocket(std::move(pair.a));
  std::string rest;
  FreezeSocket(pair.b.get(), &rest);
  EXPECT_EQ("some words", rest);
}

TEST(SocketSwapTest, TheNumberStaysAndTheOldPeerIsReset) {
  TcpPair before = MakeTcpPair();
  TcpPair after = MakeTcpPair();
  const int number = before.b.get();
  std::string rest;
  FreezeSocket(number, &rest);
  ASSERT_TRUE(ReplaceSocket(number, after.b.get()).ok());
  after.b.reset();
  ASSERT_TRUE(WriteAll(after.a.get(), "through the new one"));
  EXPECT_EQ("through the new one", ReadAvailable(number));
  EXPECT_EQ(-1, send(before.a.get(), "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
  EXPECT_EQ(EPIPE, errno);  // of a socket that was ended first
}

TEST(SocketSwapTest, ALaterOfferReplacesOneThatWasNotTaken) {
  NextSocket next;
  EXPECT_FALSE(next.waiting());
  for (const int fd : {3, 4}) {
    SocketOffer offer;
    offer.fd = fd;
    next.Put(offer);
  }
  EXPECT_TRUE(next.waiting());
  EXPECT_EQ(4, next.Take().fd);
  EXPECT_FALSE(next.waiting());
}

}  // namespace
}  // namespace tcpx
