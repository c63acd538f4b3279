// fuse.h: which interfaces TCPX_FUSE joins to one device.
//
// Purpose: reads the groups ("eth1+eth2,eth3+eth4") against the interfaces that are devices. A fused device takes the
//          place of its members: listed with it they would be taken for further links, and loaded twice.
// Threads: any; pure.
// Errors:  a group that can't be fused is left out, its members stay devices of their own, and one warning says what to
//          change.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/interfaces.h"

namespace tcpx {

// One interface by the address that was chosen, and by its first one of the other family, if that may be offered.
struct FuseCandidate {
  Interface interface;
  std::optional<Interface> other;
};

// The members of each device, as indices of `chosen`: a device has the place of the first of its members there, and
// has them in the order of the group. An empty `spec` fuses none.
std::vector<std::vector<int>> PlanFusion(const std::string& spec, const std::vector<FuseCandidate>& chosen,
                                         std::vector<std::string>* warnings);

// Why these can't be one device; empty where they can.
std::string WhyNotFused(const std::vector<FuseCandidate>& members);

// The family that all members have an address of, that of the first one's chosen address if possible; 0: none.
int FamilyOfAll(const std::vector<FuseCandidate>& members);

}  // namespace tcpx
