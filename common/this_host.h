// this_host.h: the name of this host, what tells this network namespace from all others, and whose an address in it is.
//
// Purpose: an address that several hosts or containers have (bridges of docker, a local DNS, loopback) leads each of
//          them to itself. Who dials it can tell only if the peer says where it is.
//
// Threads: any.
// Errors:  0, and an empty name, where the kernel does not tell.
#ifndef TCPX_COMMON_THIS_HOST_H_
#define TCPX_COMMON_THIS_HOST_H_

#include <cstdint>
#include <string>

#include "common/address.h"

namespace tcpx {

// What gethostname(2) says.
std::string HostName();

// Of this boot of this host and this network namespace. Containers that share one may differ in it where their manager
// gives each a boot id of its own.
uint64_t HostMark();

// The interface that has the address: "eth0".
std::string InterfaceWith(const SocketAddress& address);

// True exactly when it is up and has a carrier, as far as the kernel tells; one that is gone does not run.
bool InterfaceRuns(const std::string& name);

}  // namespace tcpx

#endif  // TCPX_COMMON_THIS_HOST_H_
