#include "common/tcp_info.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include "common/fd.h"
#include "gtest/gtest.h"

namespace tcpx {
namespace {

TEST(TcpInfoTest, TellsOfAConnection) {
  const OwnedFd listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const OwnedFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  ASSERT_EQ(0, bind(listening.get(), any, length));
  ASSERT_EQ(0, getsockname(listening.get(), any, &length));
  ASSERT_EQ(0, listen(listening.get(), 1));
  TcpInfo info;
  ASSERT_TRUE(ReadTcpInfo(client.get(), &info));
  EXPECT_FALSE(info.established);
  ASSERT_EQ(0, connect(client.get(), any, length));
  const OwnedFd server(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_EQ(5, send(client.get(), "hello", 5, MSG_NOSIGNAL));
  char got[5];
  ASSERT_EQ(5, recv(server.get(), got, sizeof(got), MSG_WAITALL));
  ASSERT_TRUE(ReadTcpInfo(client.get(), &info));
  EXPECT_TRUE(info.established);
  EXPECT_TRUE(info.has_acked);
  EXPECT_EQ(1u, info.segments_sent);
  EXPECT_GT(info.rtt_us, 0u);
  EXPECT_NE(info.window_bytes, ~uint32_t{0});  // It is known.
}

TEST(TcpInfoTest, KnowsNothingOfWhatIsNoTcpSocket) {
  TcpInfo info;
  EXPECT_FALSE(ReadTcpInfo(-1, &info));
  const OwnedFd datagrams(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(ReadTcpInfo(datagrams.get(), &info));
}

}  // namespace
}  // namespace tcpx
