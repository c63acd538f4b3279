// this_host.h: the name of this host, and marks of this process and of this network namespace.
//
// Purpose: an address that several hosts or containers have (bridges of docker, a local DNS, loopback) leads each of
//          them to itself. A dialler notices that only if the peer says on which host it is.
// Threads: any.
// Errors:  0, and an empty name, if the kernel does not say.
#pragma once

#include <cstdint>
#include <string>

namespace tcpx {

// What tells this process from all others of the host, for names that several containers share: "PID", or in a PID
// namespace other than the host's "PID-NAMESPACE", since containers count their processes each from 1.
std::string ProcessMark();

// What gethostname(2) says.
std::string HostName();

// The same number for all processes of this boot of this host in this network namespace. Containers that share a
// namespace may still differ, if their manager gives each its own boot id.
uint64_t HostMark();

}  // namespace tcpx
