// own_network.h: a network namespace of the test's own, with only a loopback device.
//
// Purpose: tests of IPv6 need an address that NCCL's rules accept, which ::1 is not (NCCL 2.12 to 2.30): here the
//          loopback device also carries fd00::1.
// Use:     first thing in main; the program starts anew inside the namespace:
//            tcpx::EnterOwnNetwork(argv);
// Threads: before any other.
// Errors:  where namespaces are forbidden the program goes on outside, says so on stderr, and InOwnNetwork is false.
#pragma once

namespace tcpx {

void EnterOwnNetwork(char** argv);
bool InOwnNetwork();

}  // namespace tcpx
