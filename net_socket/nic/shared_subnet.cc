#include "net_socket/nic/shared_subnet.h"

#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

int ReadRule(const std::string& proc_root, const std::string& ifname, const char* rule) {
  int value = 0;
  std::ifstream(absl::StrCat(proc_root, "/sys/net/ipv4/conf/", ifname, "/", rule)) >> value;
  return value;
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
  constexpr unsigned kNeeded = IFF_UP | IFF_RUNNING;
  for (const Interface& other : all) {
    if (other.name == interface.name || (other.flags & kNeeded) != kNeeded) continue;
    if (!InSubnet(interface, other.address) && !InSubnet(other, interface.address)) continue;
    if (std::find(names.begin(), names.end(), other.name) == names.end()) names.push_back(other.name);
  }
  return names;
}

}  // namespace tcpx
