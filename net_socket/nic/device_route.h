// device_route.h: whether the kernel has a route to an address by one interface.
//
// Purpose: a socket that is tied to an interface without such a route gets no error in IPv4: the kernel takes the
//          address for one on that link and asks for it by ARP, for seconds. So routes are asked before a lane is tied.
// Threads: any. Lifetime: nothing is kept; a few microseconds.
// Errors:  none: where the kernel can't be asked (no netlink, before Linux 4.13) the answer is yes.
// Source:  rtnetlink(7); ip_route_output_key_hash_rcu and inet_rtm_getroute of Linux 6.18 (net/ipv4/route.c).
#pragma once

#include "common/address.h"
#include "common/interfaces.h"

namespace tcpx {

// From the interface's address, which rules of routing may ask for. IPv6 sockets hear at once: always yes.
bool HasRouteBy(const Interface& interface, const SocketAddress& peer);

}  // namespace tcpx
