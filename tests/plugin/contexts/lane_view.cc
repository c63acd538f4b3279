#include "tests/plugin/contexts/lane_view.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "common/address.h"

namespace tcpx {
namespace {

int Option(int fd, int level, int option) {
  int value = -1;
  socklen_t length = sizeof(value);
  return getsockopt(fd, level, option, &value, &length) == 0 ? value : -1;
}

// Not a health socket, which several communicators share: it alone has a timeout.
bool IsLane(int fd) {
  if (Option(fd, SOL_SOCKET, SO_TYPE) != SOCK_STREAM || Option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) != 0) return false;
  return Option(fd, SOL_SOCKET, SO_PROTOCOL) == IPPROTO_TCP && PeerAddress(fd).ok();
}

LaneEnd Look(int fd) {
  LaneEnd end;
  end.fd = fd;
  end.local = LocalAddress(fd).value_or(SocketAddress()).ToString();
  end.peer = PeerAddress(fd).value_or(SocketAddress()).ToString();
  const bool v6 = Option(fd, SOL_SOCKET, SO_DOMAIN) == AF_INET6;
  end.traffic_class = v6 ? Option(fd, IPPROTO_IPV6, IPV6_TCLASS) : Option(fd, IPPROTO_IP, IP_TOS);
  end.priority = Option(fd, SOL_SOCKET, SO_PRIORITY);
  return end;
}

}  // namespace

std::vector<LaneEnd> ConnectedSockets() {
  std::vector<LaneEnd> ends;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    if (IsLane(fd)) ends.push_back(Look(fd));
  }
  std::sort(ends.begin(), ends.end(), [](const LaneEnd& a, const LaneEnd& b) { return a.fd < b.fd; });
  return ends;
}

std::vector<LaneEnd> NewOnes(const std::vector<LaneEnd>& all, const std::vector<LaneEnd>& before) {
  std::vector<LaneEnd> found;
  std::copy_if(all.begin(), all.end(), std::back_inserter(found), [&](const LaneEnd& one) {
    return std::none_of(before.begin(), before.end(),
                        [&](const LaneEnd& old) { return old.local == one.local && old.peer == one.peer; });
  });
  return found;
}

int TrafficClassOfSyn(int fd) {
  unsigned char header[128] = {};
  socklen_t length = sizeof(header);
  if (getsockopt(fd, IPPROTO_TCP, TCP_SAVED_SYN, header, &length) != 0 || length < 20) return -1;
  const int version = header[0] >> 4;
  if (version == 4) return header[1];                                   // RFC 791
  return version == 6 ? ((header[0] & 15) << 4 | header[1] >> 4) : -1;  // RFC 8200
}

}  // namespace tcpx
