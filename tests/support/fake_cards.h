// fake_cards.h: network cards for a test with a network of its own: interfaces eth0, eth1, ... with addresses
// 10.0.N.1/24.
//
// Threads: one at a time. Units: none. Errors: what can't be made fails the test.
#pragma once

#include <string>

namespace tcpx {

std::string CardName(int card);
// Its folder in a tree that replaces /sys.
std::string CardPath(int card);
// Makes the interfaces of cards 0 to `count` - 1, and waits until the kernel calls them running.
void MakeInterfaces(int count);

}  // namespace tcpx
