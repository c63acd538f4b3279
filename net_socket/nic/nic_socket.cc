#include "net_socket/nic/nic_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/small_file.h"
#include "common/socket.h"
#include "common/status.h"
#include "net_socket/nic/routing.h"

namespace tcpx {
namespace {

// How often a range is searched while other sockets take its ports.
constexpr int kRounds = 10;

// More owners of ports would fill the log and tell nothing new.
constexpr size_t kNamedMax = 16;

// An errno, or 0. `raced`: with SO_REUSEADDR two may be bound to a port at once. The second to listen is refused,
// and of two that do so at the same time both are.
int BindAndListen(int fd, const SocketAddress& address, bool* raced) {
  if (bind(fd, address.sockaddr(), address.length()) != 0) return errno;
  if (listen(fd, kListenBacklog) == 0) return 0;
  *raced = *raced || errno == EADDRINUSE;
  return errno;
}

// "0100007F:9C40" of /proc/net/tcp: words of 32 bits as they lie in memory, and the port.
SocketAddress ParseHex(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, ':');
  std::string bytes;
  uint32_t word = 0;
  for (size_t at = 0; at < parts.first.size(); at += 8) {
    if (!absl::SimpleHexAtoi(parts.first.substr(at, 8), &word)) return SocketAddress();
    bytes.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  if (!absl::SimpleHexAtoi(parts.second, &word)) return SocketAddress();
  SocketAddress address = SocketAddress::FromBytes(bytes.size() == sizeof(in_addr) ? AF_INET : AF_INET6, bytes);
  address.set_port(static_cast<uint16_t>(word));
  return address;
}

// Ports by the inode of a socket that has them. One without an inode belongs to no process: TIME_WAIT, say, which is
// no hindrance.
void ReadSockets(const char* path, const SocketAddress& wanted, const PortRange& range,
                 std::map<std::string, int>* ports) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    if (words.size() < 10 || words[9] == "0") continue;
    const SocketAddress address = ParseHex(words[1]);
    if (address.port() < range.low || address.port() > range.high) continue;
    if (!address.IsAny() && !address.SameHostAddress(wanted)) continue;
    (*ports)[absl::StrCat("socket:[", words[9], "]")] = address.port();
  }
}

// Adds it to the `owners`, by port, of what it has of these sockets; the first of several stays.
void NameProcess(const std::filesystem::path& folder, const std::map<std::string, int>& ports,
                 std::map<int, std::string>* owners) {
  std::error_code ended;
  for (std::filesystem::directory_iterator it(folder / "fd", ended), end; !ended && it != end; it.increment(ended)) {
    std::error_code closed;
    const auto found = ports.find(std::filesystem::read_symlink(it->path(), closed).string());
    if (closed || found == ports.end()) continue;
    std::string command;
    std::ifstream comm(folder / "comm");
    std::getline(comm, command);
    owners->emplace(found->second, absl::StrCat("process ", folder.filename().string(), " (", command, ")"));
  }
}

// "40000 by process 71 (python3), 40001 by a process that can't be seen": those that keep us from listening on
// `address`. Empty where none is known. It reads /proc (proc(5)), milliseconds on a busy host.
std::string DescribePortOwners(const SocketAddress& address, const PortRange& range) {
  std::map<std::string, int> ports;
  for (const char* file : {"/proc/net/tcp", "/proc/net/tcp6"}) ReadSockets(file, address, range, &ports);
  if (ports.empty()) return "";
  std::map<int, std::string> owners;
  for (const int pid : NumbersIn("/proc")) NameProcess(absl::StrCat("/proc/", pid), ports, &owners);
  for (const auto& [inode, port] : ports) owners.emplace(port, "a process that can't be seen");
  const bool more = owners.size() > kNamedMax;
  if (more) owners.erase(std::next(owners.begin(), kNamedMax), owners.end());
  return absl::StrCat(absl::StrJoin(owners, ", ", absl::PairFormatter(" by ")), more ? ", and more" : "");
}

// `forbidden`: how many of its ports this user may not have; the others are taken.
absl::Status RangeUsedUp(const SocketAddress& address, const PortRange& range, int forbidden) {
  std::string text = absl::StrCat("listen on ", address.HostString(), ": TCPX_PORT_RANGE=", range.low, "-", range.high);
  const bool all = forbidden > range.high - range.low;
  if (!all) {
    const std::string owners = DescribePortOwners(address, range);
    absl::StrAppend(&text, " has no free port", owners.empty() ? "" : " (taken: " + owners + ")");
  }
  if (forbidden > 0) {
    absl::StrAppend(&text, "; ", forbidden, " of its ports this user may not have (sysctl ",
                    "net.ipv4.ip_unprivileged_port_start): choose higher ones");
  }
  return ErrnoStatus(all ? EACCES : EADDRINUSE, text);
}

}  // namespace

absl::Status BindToNic(int fd, const Nic& nic, const SocketAddress& peer, LeaveBy way) {
  if (way == LeaveBy::kRoute) return absl::OkStatus();
  const std::string& name = nic.interface.name;
  SocketAddress local = nic.interface.address;
  if (local.family() != peer.family()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "the peer's address %s is of another family than %s of %s: set NCCL_SOCKET_FAMILY alike on all ranks",
        peer.ToString(), local.HostString(), name));
  }
  const int one = 1;
  setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));  // Linux 4.2; the port is chosen by connect.
  local.set_port(0);
  if (bind(fd, local.sockaddr(), local.length()) != 0)
    return ErrnoStatus(errno, absl::StrCat("bind to ", local.HostString()));
  if (way == LeaveBy::kDevice) TieToNic(fd, nic);
  return absl::OkStatus();
}

void TieToNic(int fd, const Nic& nic) {
  if (nic.interface.address.IsLoopback()) return;
  const absl::Status bound = BindToDevice(fd, nic.interface.name);
  if (!bound.ok()) TCPX_TRACE("%s; routing decides", std::string(bound.message()));
}

bool LeavesBy(int fd, const Nic& nic, const std::vector<Nic>& nics, const SocketAddress& peer) {
  if (peer.IsLinkLocal() || BoundDevice(fd) == nic.interface.name) return true;
  const auto local = LocalAddress(fd);
  if (!local.ok() || !local->SameHostAddress(nic.interface.address)) return false;
  return std::all_of(nics.begin(), nics.end(), [&](const Nic& each) {
    return InSubnet(each.interface, peer) == (each.interface.name == nic.interface.name);
  });
}

absl::StatusOr<OwnedFd> ListenOnNic(const Nic& nic, bool bound, const PortRange& range) {
  SocketAddress address = nic.interface.address;
  int err = EADDRINUSE;
  int forbidden = 0;
  bool raced = true;
  for (int round = 0; raced && err == EADDRINUSE && round < kRounds; ++round) {
    if (round > 0) std::this_thread::sleep_for(std::chrono::microseconds(MonotonicNanos() % 1000 * round));
    raced = false;
    forbidden = 0;
    for (int port = range.low; err == EADDRINUSE && port <= range.high; ++port) {
      address.set_port(static_cast<uint16_t>(port));
      // A socket for each port: one that was bound can't be bound again.
      auto fd = StreamSocket(address.family());
      if (!fd.ok()) return fd.status();
      if (bound) TieToNic(fd->get(), nic);
      // What an earlier run left in TIME_WAIT doesn't count then.
      const absl::Status reuse = range.any() ? absl::OkStatus() : SetReuseAddress(fd->get());
      if (!reuse.ok()) return reuse;
      err = BindAndListen(fd->get(), address, &raced);
      if (err == 0) return fd;
      if (err == EACCES && !range.any()) {
        ++forbidden;
        err = EADDRINUSE;  // The next one may be free.
      }
    }
  }
  if (err == EADDRINUSE && !range.any()) return RangeUsedUp(address, range, forbidden);
  return ErrnoStatus(err, "listen on " + address.ToString());
}

}  // namespace tcpx
