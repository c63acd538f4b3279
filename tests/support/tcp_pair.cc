#include "tests/support/tcp_pair.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace tcpx {
namespace {

OwnedFd Socket(int buffer_bytes) {
  OwnedFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (buffer_bytes > 0) {
    setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &buffer_bytes, sizeof(buffer_bytes));
  }
  return fd;
}

void Finish(int fd) {
  const int on = 1;
  EXPECT_EQ(0, setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
  EXPECT_EQ(0, fcntl(fd, F_SETFL, O_NONBLOCK));
}

}  // namespace

TcpPair MakeTcpPair(int buffer_bytes) {
  TcpPair pair;
  OwnedFd listener = Socket(buffer_bytes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(0, bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  EXPECT_EQ(0, listen(listener.get(), 1));
  EXPECT_EQ(0, getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length));
  pair.a = Socket(buffer_bytes);
  EXPECT_EQ(0, connect(pair.a.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)));
  pair.b.reset(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(pair.b.valid());
  Finish(pair.a.get());
  Finish(pair.b.get());
  return pair;
}

size_t FillSocket(int fd) {
  static const std::string block(64 * 1024, 'f');
  // A late acknowledgement (40 ms, TCP_DELACK_MIN of Linux) makes room once more: it is full when it stays so.
  constexpr int kQuietRounds = 12;
  size_t total = 0;
  for (int quiet = 0; quiet < kQuietRounds;) {
    const ssize_t sent = send(fd, block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) {
      total += static_cast<size_t>(sent);
      quiet = 0;
    } else {
      ++quiet;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  return total;
}

std::string ReadAvailable(int fd, size_t max) {
  std::string all;
  char block[16 * 1024];
  while (all.size() < max) {
    const ssize_t got = recv(fd, block, std::min(sizeof(block), max - all.size()), MSG_DONTWAIT);
    if (got <= 0) break;
    all.append(block, static_cast<size_t>(got));
  }
  return all;
}

bool WriteAll(int fd, const std::string& bytes) {
  return send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

void ResetSocket(OwnedFd fd) {
  const linger abort{1, 0};
  setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
  fd.reset();
}

}  // namespace tcpx
