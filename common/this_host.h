// this_host.h: the name of this host, a mark of this network namespace, and which interface has an address.
//
// Purpose: an address that several hosts or containers have (bridges of docker, a local DNS, loopback) leads each of
//          them to itself. A dialler notices that only if the peer says on which host it is.
// Threads: any.
// Errors:  0, and an empty name, if the kernel does not say.
#pragma once

#include <cstdint>
#include <string>

#include "common/address.h"

namespace tcpx {

// What tells this process from all others of the host, for names that several containers share: "PID", or in a PID
// namespace other than the host's "PID-NAMESPACE", since containers count their processes each from 1.
std::string ProcessMark();

// What gethostname(2) says.
std::string HostName();

// The same number for all processes of this boot of this host in this network namespace. Containers that share a
// namespace may still differ, if their manager gives each its own boot id.
uint64_t HostMark();

// The interface that has the address: "eth0".
std::string InterfaceWith(const SocketAddress& address);

// True exactly when it is up and has a carrier, as far as the kernel tells; one that is gone does not run.
bool InterfaceRuns(const std::string& name);

}  // namespace tcpx
