// speeds.h: what TCPX_SPEED_MBPS says of interfaces whose speed the kernel does not know, or knows wrong.
//
// Threads: any; pure. Units: Mbit/s.
// Errors:  an entry that can't be used is left out, and one warning says what is allowed.
#pragma once

#include <string>
#include <vector>

#include "common/interfaces.h"

namespace tcpx {

// Reads "100000", or "eth0=100000,eth1=25000" (exact names), and writes it over the hardware of `name`. False, and
// nothing written, where it says nothing of it.
bool OverrideSpeed(const std::string& spec, const std::string& name, InterfaceHardware* hardware);

// What is wrong with a text, one line each; entries may name interfaces that are not `chosen`, with a line.
std::vector<std::string> CheckSpeeds(const std::string& spec, const std::vector<Interface>& chosen);

// " (TCPX_SPEED_MBPS)": where a speed is from; after the number in the log.
const char* SpeedOrigin(const InterfaceHardware& hardware);

}  // namespace tcpx
