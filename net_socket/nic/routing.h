// routing.h: how packets go between interfaces of this host and their peers.
//
// Purpose: the kernel routes by destination, so that of several interfaces in a subnet the first carries everything.
//          SO_BINDTODEVICE changes that, but a tied socket hears nothing that comes in by the others, and by default
//          each interface answers ARP for the addresses of all (ARP flux): a tied socket is deaf then, at random. One
//          that is tied to an interface without a route to its peer gets no error in IPv4: the kernel takes the address
//          for one on that link and asks for it by ARP, for seconds.
// Threads: any; what reads files or asks the kernel says so, the rest is pure.
// Errors:  none: a sysctl that can't be read counts as the kernel's default.
// Source:  Documentation/networking/ip-sysctl.rst; IPv6 answers for an interface's own addresses only (ndisc.c).
//          rtnetlink(7); ip_route_output_key_hash_rcu and inet_rtm_getroute of Linux 6.18 (net/ipv4/route.c).
#pragma once

#include <string>
#include <vector>

#include "common/address.h"
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

// Whether the kernel has a route to an address by one interface, from its address, which rules of routing may ask for.
// IPv6 sockets hear at once: always yes. So it is where the kernel can't be asked (no netlink, before Linux 4.13).
// Takes a few microseconds.
bool HasRouteBy(const Interface& interface, const SocketAddress& peer);

}  // namespace tcpx
