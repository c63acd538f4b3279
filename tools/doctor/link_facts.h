// link_facts.h: what driver and kernel say of a network interface beyond what the plugin asks.
//
// Threads: any; no state. Needs no privilege.
// Units:   MTU in bytes.
// Errors:  none: what can't be asked is unknown.
// Source:  netdevice(7); ETHTOOL_GDRVINFO, _GTSO, _GGSO, _GGRO, _GRXCSUM, _GTXCSUM, _GCHANNELS of linux/ethtool.h;
//          IFLA_QDISC of rtnetlink(7).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tcpx {
namespace doctor {

struct Offload {
  const char* name;  // as ethtool -K has it: "tso"
  std::optional<bool> on;
};

struct LinkFacts {
  int mtu = 0;  // 0: unknown
  std::string driver;
  std::string qdisc;
  std::vector<Offload> offloads;  // gso, gro, tso, rx, tx
  int queues = 0;                 // 0: unknown
  int queues_max = 0;
};

LinkFacts ReadLinkFacts(const std::string& ifname);

// "tso, gro": those that are known to be off. An interface without a card has gro off by default, and what
// comes in is whole already.
std::string OffloadsOff(const LinkFacts& facts, bool is_virtual);

}  // namespace doctor
}  // namespace tcpx
