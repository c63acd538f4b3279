#include "net_socket/nic/port_owners.h"

#include <netinet/in.h>
#include <string.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tcpx {
namespace {

// More would fill the log and tell nothing new.
constexpr size_t kNamedMax = 16;

struct Owned {
  int port = 0;
  std::string process;
};

// "0100007F:9C40" of /proc/net/tcp: words of 32 bits as they lie in memory, and the port.
SocketAddress ParseHex(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || (colon != 8 && colon != 32)) return SocketAddress();
  uint32_t words[4] = {};
  uint32_t port = 0;
  for (size_t i = 0; i * 8 < colon; ++i) {
    if (!absl::SimpleHexAtoi(text.substr(i * 8, 8), &words[i])) return SocketAddress();
  }
  if (!absl::SimpleHexAtoi(text.substr(colon + 1), &port)) return SocketAddress();
  SocketAddress address = SocketAddress::Any(colon == 8 ? AF_INET : AF_INET6);
  sockaddr_storage raw{};
  memcpy(&raw, address.sockaddr(), address.length());
  if (colon == 8) {
    memcpy(&reinterpret_cast<sockaddr_in*>(&raw)->sin_addr, words, 4);
  } else {
    memcpy(&reinterpret_cast<sockaddr_in6*>(&raw)->sin6_addr, words, 16);
  }
  address = SocketAddress::FromSockaddr(reinterpret_cast<sockaddr*>(&raw), address.length()).value_or(SocketAddress());
  if (address.valid()) address.set_port(static_cast<uint16_t>(port));
  return address;
}

// Ports by the inode of a socket that has them. One without an inode belongs to no process: TIME_WAIT, say, which is
// no hindrance.
void ReadSockets(const std::string& path, const SocketAddress& wanted, const PortRange& range,
                 std::map<std::string, Owned>* sockets) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string skip, local, inode;
    words >> skip >> local;
    for (int i = 0; i < 7; ++i) words >> skip;
    words >> inode;
    const SocketAddress address = ParseHex(local);
    if (!address.valid() || inode.empty() || inode == "0") continue;
    if (address.port() < range.low || address.port() > range.high) continue;
    if (!address.IsAny() && !address.SameHostAddress(wanted)) continue;
    (*sockets)["socket:[" + inode + "]"].port = address.port();
  }
}

void NameProcess(const std::filesystem::path& folder, std::map<std::string, Owned>* sockets) {
  std::error_code ended;
  for (std::filesystem::directory_iterator it(folder / "fd", ended), end; !ended && it != end; it.increment(ended)) {
    std::error_code closed;
    const auto found = sockets->find(std::filesystem::read_symlink(it->path(), closed).string());
    if (closed || found == sockets->end() || !found->second.process.empty()) continue;
    std::string command;
    std::ifstream comm(folder / "comm");
    std::getline(comm, command);
    found->second.process = absl::StrCat("process ", folder.filename().string(), " (", command, ")");
  }
}

}  // namespace

std::string DescribePortOwners(const SocketAddress& address, const PortRange& range, const std::string& proc_root) {
  std::map<std::string, Owned> sockets;
  for (const char* file : {"/net/tcp", "/net/tcp6"}) ReadSockets(proc_root + file, address, range, &sockets);
  if (sockets.empty()) return "";
  std::error_code error;
  for (std::filesystem::directory_iterator it(proc_root, error), end; !error && it != end; it.increment(error)) {
    int pid = 0;
    if (absl::SimpleAtoi(it->path().filename().string(), &pid)) NameProcess(it->path(), &sockets);
  }
  std::map<int, std::string> by_port;
  for (const auto& [inode, owned] : sockets) {
    std::string& process = by_port[owned.port];
    if (process.empty()) process = owned.process;
  }
  std::vector<std::string> texts;
  for (const auto& [port, process] : by_port) {
    if (texts.size() == kNamedMax) {
      texts.push_back("and more");
      break;
    }
    texts.push_back(absl::StrCat(port, " by ", process.empty() ? "a process that can't be seen" : process));
  }
  return absl::StrJoin(texts, ", ");
}

}  // namespace tcpx
