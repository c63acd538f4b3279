#include "tests/support/socket_killer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/address.h"
#include "tests/support/own_network.h"

namespace tcpx {
namespace {

constexpr uint8_t kSockDestroy = 21;  // SOCK_DESTROY of linux/sock_diag.h, which older headers lack

int IntOption(int fd, int level, int name) {
  int value = 0;
  socklen_t length = sizeof(value);
  return getsockopt(fd, level, name, &value, &length) == 0 ? value : 0;
}

// 0: none.
uint64_t Cookie(int fd) {
  uint64_t cookie = 0;
  socklen_t length = sizeof(cookie);
  return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

// Bare system calls: the thread sanitizer would take them for the plugin's own use of its descriptors.
class Held {
 public:
  explicit Held(int fd) : fd_(static_cast<int>(syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 0))) {}
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() {
    if (fd_ >= 0) syscall(SYS_close, fd_);
  }

  int get() const { return fd_; }

 private:
  const int fd_;
};

std::vector<int> Descriptors() {
  std::vector<int> all;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    if (entry->d_name[0] != '.') all.push_back(atoi(entry->d_name));
  }
  closedir(folder);
  return all;
}

struct DestroyRequest {
  nlmsghdr header;
  inet_diag_req_v2 request;
};

// The cookie names this very socket: where it has just gone, the kernel would take the listening one for it.
DestroyRequest MakeRequest(uint64_t cookie, const SocketAddress& local, const SocketAddress& peer) {
  DestroyRequest message{};
  message.header.nlmsg_len = sizeof(message);
  message.header.nlmsg_type = kSockDestroy;
  message.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  message.request.sdiag_family = static_cast<uint8_t>(local.family());
  message.request.sdiag_protocol = IPPROTO_TCP;
  message.request.idiag_states = ~0U;
  message.request.id.idiag_sport = htons(static_cast<uint16_t>(local.port()));
  message.request.id.idiag_dport = htons(static_cast<uint16_t>(peer.port()));
  message.request.id.idiag_cookie[0] = static_cast<uint32_t>(cookie);
  message.request.id.idiag_cookie[1] = static_cast<uint32_t>(cookie >> 32);
  const auto* from = reinterpret_cast<const sockaddr_in*>(local.sockaddr());
  const auto* to = reinterpret_cast<const sockaddr_in*>(peer.sockaddr());
  message.request.id.idiag_src[0] = from->sin_addr.s_addr;
  message.request.id.idiag_dst[0] = to->sin_addr.s_addr;
  return message;
}

bool Listens(int fd) { return IntOption(fd, SOL_SOCKET, SO_ACCEPTCONN) != 0; }

// The end of a lane, or of a health socket, that a descriptor is; without a cookie where it is neither.
LaneEnd EndAt(int fd, bool health) {
  const uint64_t cookie = Cookie(fd);  // Before all else: what is read below is this socket's, or Held finds out.
  if (cookie == 0 || IntOption(fd, IPPROTO_TCP, TCP_NODELAY) == 0 ||
      (IntOption(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) != 0) != health || !PeerAddress(fd).ok()) {
    return {};
  }
  return {fd, cookie};
}

std::vector<LaneEnd> FindEnds(bool health) {
  std::vector<LaneEnd> ends;
  for (int fd : Descriptors()) {
    const LaneEnd end = EndAt(fd, health);
    if (end.cookie != 0) ends.push_back(end);
  }
  return ends;
}

// One at random; without a cookie where there is none. Most descriptors are never looked at.
LaneEnd PickEnd(Rng* rng, bool health) {
  std::vector<int> left = Descriptors();
  while (!left.empty()) {
    std::swap(left[rng->Between(0, left.size() - 1)], left.back());
    const LaneEnd end = EndAt(left.back(), health);
    if (end.cookie != 0) return end;
    left.pop_back();
  }
  return {};
}

}  // namespace

std::vector<LaneEnd> FindLaneEnds() { return FindEnds(false); }

std::vector<LaneEnd> FindHealthEnds() { return FindEnds(true); }

bool IsDialled(int fd) {
  const auto peer = PeerAddress(fd);
  if (!peer.ok()) return false;
  const std::vector<int> all = Descriptors();
  return std::any_of(all.begin(), all.end(), [&peer](int other) {
    if (!Listens(other)) return false;
    const auto local = LocalAddress(other);
    return local.ok() && local->port() == peer->port();
  });
}

// All that comes with a shorter life than any packet can have is dropped (ip(7)).
bool Swallow(int fd) {
  const int longest = 255;
  return setsockopt(fd, IPPROTO_IP, IP_MINTTL, &longest, sizeof(longest)) == 0;
}

void StopListening() {
  for (int fd : Descriptors()) {
    if (Listens(fd)) shutdown(fd, SHUT_RDWR);
  }
}

bool DestroySocket(int fd) {
  if (!InOwnNetwork()) return false;
  const uint64_t cookie = Cookie(fd);
  if (cookie == 0) return false;
  const auto local = LocalAddress(fd);
  const auto peer = PeerAddress(fd);
  if (!local.ok() || !peer.ok() || local->family() != AF_INET) return false;
  const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  const DestroyRequest message = MakeRequest(cookie, *local, *peer);
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[512];
  } answer{};
  const bool asked = send(netlink, &message, sizeof(message), 0) == static_cast<ssize_t>(sizeof(message)) &&
                     recv(netlink, &answer, sizeof(answer), 0) > 0;
  close(netlink);
  return asked && answer.header.nlmsg_type == NLMSG_ERROR && answer.error.error == 0;
}

bool SocketKiller::KillOne() {
  const LaneEnd end = PickEnd(&rng_, health_);
  if (end.cookie == 0) return false;
  const uint64_t way = rng_.Between(0, 3);
  // The plugin goes on: by now its number may be another socket's, even one of the other kind.
  const Held held(end.fd);
  const int fd = held.get();
  if (Cookie(fd) != end.cookie) return false;
  if (way == 0) return shutdown(fd, SHUT_RDWR) == 0;
  if (way == 1 && IsDialled(fd)) {
    // A bare system call: the thread sanitizer takes connect() for the making of a new descriptor.
    sockaddr none{};
    none.sa_family = AF_UNSPEC;
    return syscall(SYS_connect, fd, &none, sizeof(none)) == 0;
  }
  if (DestroySocket(fd)) return true;
  return shutdown(fd, way == 2 ? SHUT_WR : SHUT_RDWR) == 0;
}

KillerThread::KillerThread(uint64_t seed, int every_us, const std::atomic<uint64_t>* received_total, bool health) {
  // Half of what all else is given: the plugin is not as slow as its tests.
  const std::chrono::microseconds pause(every_us * std::max(1, TimeScale() / 2));
  thread_ = std::thread([this, seed, pause, received_total, health] {
    SocketKiller killer(seed, health);
    uint64_t received = 0;
    int kills_since = 0;
    while (!stop_.load()) {
      std::this_thread::sleep_for(pause);
      if (received_total != nullptr && received != received_total->load()) {
        received = received_total->load();
        kills_since = 0;
      }
      if (!health && kills_since == kKillsPerMessage) {
        if (received_total != nullptr) continue;
        std::this_thread::sleep_for(kRest);
        kills_since = 0;
      }
      std::lock_guard<std::mutex> lock(mutex_);
      if (!killer.KillOne()) continue;
      kills_.fetch_add(1);
      ++kills_since;
    }
  });
}

void KillerThread::Stop() {
  stop_.store(true);
  if (thread_.joinable()) thread_.join();
}

}  // namespace tcpx
