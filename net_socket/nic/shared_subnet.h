// shared_subnet.h: interfaces of this host that lie in one subnet, and whether sockets can be tied to each.
//
// Purpose: the kernel routes by destination, so that of several interfaces in a subnet the first carries everything.
//          SO_BINDTODEVICE changes that, but a tied socket hears nothing that comes in by the others, and by default
//          each interface answers ARP for the addresses of all (ARP flux): a tied socket is deaf then, at random.
// Threads: any; what reads files says so, the rest is pure.
// Errors:  none: a sysctl that can't be read counts as the kernel's default.
// Source:  Documentation/networking/ip-sysctl.rst; IPv6 answers for an interface's own addresses only (ndisc.c).
#pragma once

#include <string>
#include <vector>

#include "common/interfaces.h"

namespace tcpx {

// The rules in force for an interface: for each the kernel takes the larger of the interface's value and that of "all".
struct ArpRules {
  int ignore = 0;
  int announce = 0;
  int rp_filter = 0;
};

// `proc_root` is "/proc" outside tests.
ArpRules ReadArpRules(const std::string& proc_root, const std::string& ifname);

// Whether packets for the interface come in by it alone, and are taken there.
bool KeepsToItself(const Interface& interface, const ArpRules& rules);

// Whether the address lies in the interface's subnet.
bool InSubnet(const Interface& interface, const SocketAddress& address);

// The names of other interfaces of `all`, up and running, that lie in a subnet with this one. Link-local addresses
// belong to one interface by their scope, and loopback's to all.
std::vector<std::string> SharersOfSubnet(const Interface& interface, const std::vector<Interface>& all);

}  // namespace tcpx
