// device_params.h: what TCPX_FUSE and TCPX_SPEED_MBPS say of the interfaces that are devices.
//
// Purpose: TCPX_FUSE joins interfaces to one device ("eth1+eth2,eth3+eth4"), which takes the place of its members:
//          listed with it they would be taken for further links, and loaded twice. TCPX_SPEED_MBPS is for interfaces
//          whose speed the kernel does not know, or knows wrong.
// Threads: any; pure. Units: Mbit/s.
// Errors:  a group that can't be fused is left out, and its members stay devices of their own; so is a speed that can't
//          be used. One warning each says what to change.
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

// Reads "100000", or "eth0=100000,eth1=25000" (exact names), and writes it over the hardware of `name`. False, and
// nothing written, where it says nothing of it.
bool OverrideSpeed(const std::string& spec, const std::string& name, InterfaceHardware* hardware);

// What is wrong with a text, one line each; entries may name interfaces that are not `chosen`, with a line.
std::vector<std::string> CheckSpeeds(const std::string& spec, const std::vector<Interface>& chosen);

// " (TCPX_SPEED_MBPS)": where a speed is from; after the number in the log.
const char* SpeedOrigin(const InterfaceHardware& hardware);

}  // namespace tcpx
