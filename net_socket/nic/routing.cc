#include "net_socket/nic/routing.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/fd.h"

#ifndef RTM_F_FIB_MATCH
#define RTM_F_FIB_MATCH 0x2000
#endif

namespace tcpx {
namespace {

int ReadRule(const std::string& proc_root, const std::string& ifname, const char* rule) {
  int value = 0;
  std::ifstream(absl::StrCat(proc_root, "/sys/net/ipv4/conf/", ifname, "/", rule)) >> value;
  return value;
}

// As it goes to the kernel. All its parts are whole words, and so aligned as netlink wants them.
struct Question {
  nlmsghdr header{};
  rtmsg route{};
  rtattr to_header{RTA_LENGTH(sizeof(in_addr)), RTA_DST};
  in_addr to{};
  rtattr from_header{RTA_LENGTH(sizeof(in_addr)), RTA_SRC};
  in_addr from{};
  rtattr index_header{RTA_LENGTH(sizeof(uint32_t)), RTA_OIF};
  uint32_t index = 0;
};

Question Ask(const Interface& interface, const SocketAddress& peer) {
  Question question;
  question.header.nlmsg_len = sizeof(question);
  question.header.nlmsg_type = RTM_GETROUTE;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.route.rtm_family = AF_INET;
  question.route.rtm_dst_len = question.route.rtm_src_len = 32;
  question.route.rtm_flags = RTM_F_FIB_MATCH;  // The entry itself, so that what the kernel only assumes is none.
  question.to = reinterpret_cast<const sockaddr_in*>(peer.sockaddr())->sin_addr;
  question.from = reinterpret_cast<const sockaddr_in*>(interface.address.sockaddr())->sin_addr;
  question.index = interface.index;
  return question;
}

// 0: there is one, or the answer says nothing.
int ErrorOf(const char* answer, ssize_t bytes) {
  if (bytes < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(nlmsgerr)))) return 0;
  nlmsghdr header;
  std::memcpy(&header, answer, sizeof(header));
  if (header.nlmsg_type != NLMSG_ERROR) return 0;
  nlmsgerr error;
  std::memcpy(&error, answer + NLMSG_LENGTH(0), sizeof(error));
  return -error.error;
}

}  // namespace

ArpRules ReadArpRules(const std::string& proc_root, const std::string& ifname) {
  ArpRules rules;
  for (const std::string& name : {std::string("all"), ifname}) {
    rules.ignore = std::max(rules.ignore, ReadRule(proc_root, name, "arp_ignore"));
    rules.announce = std::max(rules.announce, ReadRule(proc_root, name, "arp_announce"));
    rules.rp_filter = std::max(rules.rp_filter, ReadRule(proc_root, name, "rp_filter"));
  }
  return rules;
}

bool KeepsToItself(const Interface& interface, const ArpRules& rules) {
  if (interface.address.family() != AF_INET) return true;
  return (rules.ignore == 1 || rules.ignore == 2) && rules.announce == 2 && rules.rp_filter != 1;
}

bool InSubnet(const Interface& interface, const SocketAddress& address) {
  return interface.prefix_bits > 0 && interface.address.SamePrefix(address, interface.prefix_bits);
}

std::vector<std::string> SharersOfSubnet(const Interface& interface, const std::vector<Interface>& all) {
  std::vector<std::string> names;
  if (interface.address.IsLoopback() || interface.address.IsLinkLocal()) return names;
  for (const Interface& other : all) {
    if (other.name == interface.name || !other.runs()) continue;
    if (!InSubnet(interface, other.address) && !InSubnet(other, interface.address)) continue;
    if (std::find(names.begin(), names.end(), other.name) == names.end()) names.push_back(other.name);
  }
  return names;
}

bool HasRouteBy(const Interface& interface, const SocketAddress& peer) {
  if (peer.family() != AF_INET || interface.address.family() != AF_INET) return true;
  const OwnedFd fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  if (!fd.valid()) return true;
  const Question question = Ask(interface, peer);
  char answer[4096];
  // The kernel answers within the call.
  if (send(fd.get(), &question, sizeof(question), 0) < 0) return true;
  const int err = ErrorOf(answer, recv(fd.get(), answer, sizeof(answer), 0));
  return err != ENETUNREACH && err != EHOSTUNREACH;
}

}  // namespace tcpx
