// own_address.h: what to do where a peer's address is one of this host's own.
//
// Purpose: bridges of docker, a local DNS and loopback have the same address on every host, so that a dial leads back
//          here. What helps depends on who chose the interface: this host's NCCL_SOCKET_IFNAME, or the peer's.
// Threads: any.
// Errors:  OwnAddressFailure's is kUnavailable.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/address.h"
#include "common/interfaces.h"

namespace tcpx {

// A sentence without its full stop. `all`: SystemInterfaces'. `name`: the interface here that has the address; empty:
// unknown.
std::string OwnAddressAdvice(const std::vector<Interface>& all, const InterfaceFilter& filter, const std::string& name);

// What a dial to `peer` ends with, which is an address of this host though the peer is elsewhere. `why`: what came of
// it.
absl::Status OwnAddressFailure(const SocketAddress& peer, const InterfaceFilter& filter, const std::string& why);

}  // namespace tcpx
