#include "tests/support/own_network.h"

#include <arpa/inet.h>
#include <linux/ipv6.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace tcpx {
namespace {

constexpr char kMarker[] = "TCPX_TEST_OWN_NETWORK";

bool LoopbackUp() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
  const bool up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return up;
}

// netdevice(7): an IPv6 address is added with in6_ifreq on an IPv6 socket.
bool AddAddress(const char* address) {
  const int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  in6_ifreq request{};
  request.ifr6_prefixlen = 64;
  request.ifr6_ifindex = static_cast<int>(if_nametoindex("lo"));
  const bool added = inet_pton(AF_INET6, address, &request.ifr6_addr) == 1 && ioctl(fd, SIOCSIFADDR, &request) == 0;
  close(fd);
  return added;
}

// The kernel lets nobody use a new IPv6 address before a thread of its own had a turn.
bool Usable(const char* address) {
  sockaddr_in6 name{};
  name.sin6_family = AF_INET6;
  inet_pton(AF_INET6, address, &name.sin6_addr);
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool usable = false;
  for (int tries = 0; tries < 60000 && !usable; ++tries) {
    usable = bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) == 0;
    if (!usable) usleep(1000);
  }
  close(fd);
  return usable;
}

void SetUp() {
  if (LoopbackUp() && AddAddress("fd00::1") && Usable("fd00::1")) return;
  std::perror("own network: the loopback device could not be set up");
  std::exit(1);
}

// The program is started anew by unshare(1), because a process with threads (a sanitizer's) can't enter a user
// namespace.
void StartAnew(char** argv) {
  std::vector<char*> arguments;
  for (const char* word : {"unshare", "--map-root-user", "--net", "--"}) arguments.push_back(const_cast<char*>(word));
  // The kernel of another processor does not start it: the emulator does (.bazelrc, test:aarch64).
  const char* const emulator = std::getenv("TCPX_TEST_EMULATOR");
  std::istringstream words(emulator == nullptr ? "" : emulator);
  std::vector<std::string> emulation{std::istream_iterator<std::string>(words), {}};
  for (std::string& word : emulation) arguments.push_back(&word[0]);
  for (; *argv != nullptr; ++argv) arguments.push_back(*argv);
  arguments.push_back(nullptr);
  setenv(kMarker, "1", 1);
  execvp("unshare", arguments.data());
  unsetenv(kMarker);
}

}  // namespace

bool InOwnNetwork() { return std::getenv(kMarker) != nullptr; }

void EnterOwnNetwork(char** argv) {
  if (InOwnNetwork()) return SetUp();
  if (std::system("unshare --map-root-user --net true 2>/dev/null") == 0) StartAnew(argv);
  std::fprintf(stderr, "own network: `unshare --map-root-user --net` is not possible here: what needs it is skipped\n");
}

}  // namespace tcpx
