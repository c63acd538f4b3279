// killer: resets random TCP sockets of this network namespace again and again, as `ss -K` does, without costing the two
// processes under test a CPU: one process, two netlink calls a kill.
//
// usage: killer --seconds N --every-ms N [--seed N] [--moved BYTES]
//
// Spared are sockets that have moved fewer bytes than --moved says (1000: health sockets and lanes just born). Writes
// the number of kills to stdout at its end.
//
// Threads: one.
// Errors:  exit code 0; 1: the kernel refuses (INET_DIAG_DESTROY is off, no right to); 2: wrong usage.
// Source:  sock_diag(7); SOCK_DESTROY since Linux 4.9.
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace tcpx {
namespace bench {
namespace {

constexpr uint16_t kSockDestroy = 21;       // SOCK_DESTROY of linux/sock_diag.h, which older headers lack
constexpr unsigned kEstablished = 1U << 1;  // TCP_ESTABLISHED of the kernel's tcp_states.h

struct Victim {
  uint8_t family;
  inet_diag_sockid id;
};

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 diag;
};

[[noreturn]] void Die(const std::string& why, int code) {
  fprintf(stderr, "killer: %s\n", why.c_str());
  exit(code);
}

Request MakeRequest(uint16_t type, uint16_t flags, uint8_t family) {
  Request request{};
  request.header.nlmsg_len = sizeof(request);
  request.header.nlmsg_type = type;
  request.header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | flags);
  request.diag.sdiag_family = family;
  request.diag.sdiag_protocol = IPPROTO_TCP;
  request.diag.idiag_states = kEstablished;
  return request;
}

void Ask(int netlink, const Request& request) {
  if (send(netlink, &request, sizeof(request), 0) != static_cast<ssize_t>(sizeof(request))) {
    Die(std::string("netlink: ") + strerror(errno), 1);
  }
}

uint64_t MovedBytes(const nlmsghdr* message) {
  const auto* diag = static_cast<const inet_diag_msg*>(NLMSG_DATA(message));
  auto left = static_cast<unsigned>(message->nlmsg_len - NLMSG_LENGTH(sizeof(*diag)));
  for (auto* at = reinterpret_cast<const rtattr*>(diag + 1); RTA_OK(at, left); at = RTA_NEXT(at, left)) {
    if (at->rta_type != INET_DIAG_INFO) continue;
    tcp_info info{};
    memcpy(&info, RTA_DATA(at), std::min<size_t>(RTA_PAYLOAD(at), sizeof(info)));
    return std::max(info.tcpi_bytes_acked, info.tcpi_bytes_received);
  }
  return 0;
}

// Reads one piece of the dump; false: it was the last.
bool ReadDump(int netlink, uint64_t moved_min, std::vector<Victim>* victims) {
  alignas(nlmsghdr) char buffer[32768];
  const ssize_t got = recv(netlink, buffer, sizeof(buffer), 0);
  if (got <= 0) Die(std::string("netlink: ") + strerror(errno), 1);
  auto left = static_cast<unsigned>(got);
  for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer); NLMSG_OK(message, left);
       message = NLMSG_NEXT(message, left)) {
    if (message->nlmsg_type == NLMSG_DONE) return false;
    if (message->nlmsg_type == NLMSG_ERROR) Die("the kernel does not list its sockets", 1);
    const auto* diag = static_cast<const inet_diag_msg*>(NLMSG_DATA(message));
    if (MovedBytes(message) >= moved_min) victims->push_back({diag->idiag_family, diag->id});
  }
  return true;
}

std::vector<Victim> FindVictims(int netlink, uint64_t moved_min) {
  std::vector<Victim> victims;
  for (int family : {AF_INET, AF_INET6}) {
    Request request = MakeRequest(SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, static_cast<uint8_t>(family));
    request.diag.idiag_ext = 1U << (INET_DIAG_INFO - 1);
    Ask(netlink, request);
    while (ReadDump(netlink, moved_min, &victims)) {
    }
  }
  return victims;
}

bool Kill(int netlink, const Victim& victim) {
  Request request = MakeRequest(kSockDestroy, NLM_F_ACK, victim.family);
  request.diag.id = victim.id;
  Ask(netlink, request);
  struct {
    nlmsghdr header;
    nlmsgerr error;
    char rest[512];
  } answer{};
  if (recv(netlink, &answer, sizeof(answer), 0) <= 0) Die(std::string("netlink: ") + strerror(errno), 1);
  const int error = -answer.error.error;
  if (error == EPERM || error == EOPNOTSUPP) Die(std::string("SOCK_DESTROY: ") + strerror(error), 1);
  return error == 0;  // ENOENT: it has just gone by itself
}

struct Options {
  double seconds = 0;
  int every_ms = 0;
  unsigned seed = 1;
  uint64_t moved_min = 1000;
};

int Run(const Options& options) {
  const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) Die(std::string("netlink: ") + strerror(errno), 1);
  std::mt19937 random(options.seed);
  int kills = 0;
  const auto begun = std::chrono::steady_clock::now();
  const auto end = begun + std::chrono::duration<double>(options.seconds);
  for (auto next = begun; next < end; next += std::chrono::milliseconds(options.every_ms)) {
    std::this_thread::sleep_until(next);
    const std::vector<Victim> victims = FindVictims(netlink, options.moved_min);
    if (victims.empty()) continue;
    if (Kill(netlink, victims[random() % victims.size()])) ++kills;
  }
  close(netlink);
  printf("%d\n", kills);
  return 0;
}

int Main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* const value = argv[i + 1];
    if (name == "--seconds") {
      options.seconds = atof(value);
    } else if (name == "--every-ms") {
      options.every_ms = atoi(value);
    } else if (name == "--seed") {
      options.seed = static_cast<unsigned>(atoi(value));
    } else if (name == "--moved") {
      options.moved_min = strtoull(value, nullptr, 10);
    } else {
      Die("no option " + name, 2);
    }
  }
  if (argc % 2 == 0 || options.seconds <= 0 || options.every_ms <= 0) {
    Die("usage: killer --seconds N --every-ms N [--seed N] [--moved BYTES]", 2);
  }
  return Run(options);
}

}  // namespace
}  // namespace bench
}  // namespace tcpx

int main(int argc, char** argv) { return tcpx::bench::Main(argc, argv); }
