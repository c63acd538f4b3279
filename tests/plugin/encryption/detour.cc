#include "tests/plugin/encryption/detour.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace tcpx {
namespace {

// Both ports in one number.
std::atomic<unsigned> g_detour{0};

}  // namespace

void Detour(int from, int to) { g_detour = static_cast<unsigned>(from) | static_cast<unsigned>(to) << 16; }

int ConnectStraight(int fd, const SocketAddress& to) {
  return static_cast<int>(syscall(SYS_connect, fd, to.sockaddr(), to.length()));
}

}  // namespace tcpx

extern "C" __attribute__((visibility("default"))) int connect(int fd, const sockaddr* address, socklen_t length) {
  using Connect = int (*)(int, const sockaddr*, socklen_t);
  static const auto next = reinterpret_cast<Connect>(dlsym(RTLD_NEXT, "connect"));
  const unsigned detour = tcpx::g_detour.load();
  if (address->sa_family != AF_INET || length < sizeof(sockaddr_in)) return next(fd, address, length);
  auto there = *reinterpret_cast<const sockaddr_in*>(address);
  if (detour != 0 && ntohs(there.sin_port) == (detour & 0xffff))
    there.sin_port = htons(static_cast<uint16_t>(detour >> 16));
  return next(fd, reinterpret_cast<const sockaddr*>(&there), sizeof(there));
}
