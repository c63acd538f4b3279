// lane_plan.h: how many lanes a connection has, which interface each leaves by and which of the peer's it goes to.
//
// Purpose: both ends may have several interfaces (a fused device), as many as each other or not. Lanes are dealt in
//          proportion to speed, on both sides at once, and every interface gets a bulk lane before any gets a second
//          one. Hosts that are alike are joined first to first, second to second, as cabled in rails.
// Threads: any; pure. Units: Mbit/s. Errors: kUnavailable for addresses that no honest peer would give.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "common/address.h"
#include "common/params.h"
#include "net_socket/message/wire.h"
#include "net_socket/nic/device.h"
#include "net_socket/nic/path_profile.h"

namespace tcpx {

struct LaneCount {
  int lanes = 1;        // lane 0 included
  bool shared = false;  // fewer than the connection would have alone
};

// The lanes of a connection from `nics` to a peer with `peer_nics` interfaces (TCPX_LANES in docs/parameters.md);
// `lanes_left`: lane_budget.h. One on a path whose lanes don't go by speed, unless the parameter says otherwise.
LaneCount LanesFor(const Options& options, const PathProfile& path, const std::vector<Nic>& nics, int peer_nics,
                   int64_t lanes_left);

// Puts the address first that lane 0 dials, and takes away the other one where it can't serve: of a family that the
// device lacks, or `misleading` (not the peer's alone). The peer's own order holds where both serve.
void ChooseAddresses(const Device& device, const std::function<bool(const SocketAddress&)>& misleading, Handle* handle);

// Those of one family, in their order.
std::vector<PeerNic> OfFamily(const std::vector<PeerNic>& nics, int family);

// Which of ours lane 0 leaves by, dialled when only one of the peer's addresses is known.
const Nic& NicTowards(const std::vector<Nic>& nics, const SocketAddress& peer);

struct LanePath {
  const Nic* nic = nullptr;
  SocketAddress peer;
};

// The paths of lanes 1 to `bulk_lanes`. One of ours goes to those of the peer's that lie in its subnet, or, where none
// does, to any (by a router). `nics` must outlive the paths.
std::vector<LanePath> PlanLanes(const std::vector<Nic>& nics, const std::vector<PeerNic>& peers, int bulk_lanes);

// Are these addresses for whom we dialled at `dialled`?
absl::Status CheckPeerNics(const SocketAddress& dialled, const std::vector<PeerNic>& peers);

}  // namespace tcpx
