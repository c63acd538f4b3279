// What a lane's old socket had left comes first, and counts.
#include "net_socket/receive/stream_intake.h"

#include <gtest/gtest.h>
#include <sys/uio.h>

#include <string>
#include <utility>

#include "net_socket/engine/socket_swap.h"
#include "tests/support/tcp_pair.h"

namespace tcpx {
namespace {

std::string Receive(StreamIntake* intake, int fd, size_t first, size_t second) {
  char bytes[64] = {};
  iovec iov[2] = {{bytes, first}, {bytes + first, second}};
  const ssize_t got = intake->Receive(fd, iov, 2);
  return got < 0 ? "nothing" : std::string(bytes, static_cast<size_t>(got));
}

TEST(StreamIntakeTest, GoesOnInTheMiddle) {
  TcpPair before = MakeTcpPair();
  TcpPair after = MakeTcpPair();
  const int fd = before.b.get();
  StreamIntake intake;
  ASSERT_TRUE(WriteAll(before.a.get(), "0123456789"));
  EXPECT_EQ("012", Receive(&intake, fd, 1, 2));
  EXPECT_EQ(3u, intake.taken());
  intake.Freeze(fd);
  EXPECT_EQ(10u, intake.taken());
  ASSERT_TRUE(ReplaceSocket(fd, after.b.get()).ok());
  ASSERT_TRUE(WriteAll(after.a.get(), "abc"));
  EXPECT_EQ("3456", Receive(&intake, fd, 3, 1));
  // A second loss, with something left of the first.
  intake.Freeze(fd);
  EXPECT_EQ(13u, intake.taken());
  EXPECT_EQ("789abc", Receive(&intake, fd, 5, 50));
  EXPECT_EQ(13u, intake.taken());
}

}  // namespace
}  // namespace tcpx
