// traffic_class.h: traffic classes: an octet as in IPv4 TOS and IPv6 Traffic Class, whose upper six bits are the DSCP.
//
// Purpose: from what an application asks for (the octet itself, as NCCL_IB_TC is, or an id that the operator has given
//          a meaning) to the octet that packets bear. Pure.
// Threads: any.
// Units:   an octet is 0 to 252 with the two ECN bits clear, or kNoTrafficClass; a DSCP is 0 to 63; a priority 0 to 7.
// Errors:  kInvalidArgument with one sentence that says what is allowed.
// Source:  the octet: RFC 2474 (DSCP), RFC 3168 (ECN). Names: RFC 2474 (cs0 to cs7, df), 2597 (af), 3246 (ef), 5865
//          (va), 8622 (le); be is tc's and nft's word for df.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tcpx {

// Packets stay as the kernel makes them. Also what a parameter or NCCL says that sets none
// (NCCL_NET_TRAFFIC_CLASS_UNDEF).
inline constexpr int kNoTrafficClass = -1;
// Largest value, and largest id of a map.
inline constexpr int kTrafficClassMax = 255;
inline constexpr int kEcnBits = 3;

constexpr int DscpOf(int octet) { return octet >> 2; }

// SO_PRIORITY for packets of this class: the upper three bits, which are the class selector (RFC 2474, 4.2.2) and the
// priority of a VLAN tag (IEEE 802.1Q), so that queues by priority and queues by DSCP agree.
constexpr int PriorityOf(int octet) { return octet >> 5; }

// True exactly for an octet that ResolveTrafficClass could have made, and for kNoTrafficClass.
constexpr bool IsTrafficClass(int octet) {
  return octet == kNoTrafficClass || (octet >= 0 && octet <= kTrafficClassMax && (octet & kEcnBits) == 0);
}

// What a parameter asks for: an octet or an id, or the octet of a DSCP that it names, which no map changes.
struct AskedClass {
  int value = kNoTrafficClass;
  bool named = false;
  bool operator==(const AskedClass& other) const { return value == other.value && named == other.named; }
};

// The DSCP that a name such as "ef" means, in upper or lower case; nothing for any other text.
std::optional<int> DscpOfName(absl::string_view text);

using TrafficClassMap = std::map<int, int>;  // from ids to DSCPs

// "ID:DSCP[,ID:DSCP]...": a DSCP is a name or a number, each id comes once. No text is an empty map.
absl::StatusOr<TrafficClassMap> ParseTrafficClassMap(absl::string_view text);

// The octet for `value`: that of its id, else `value` itself without the ECN bits, which are the kernel's. For
// kNoTrafficClass an error. With the map "2:46" 2 is 184 (DSCP 46), and 106 is 104 (DSCP 26).
absl::StatusOr<int> ResolveTrafficClass(int value, const TrafficClassMap& map);
absl::StatusOr<int> ResolveTrafficClass(const AskedClass& asked, const TrafficClassMap& map);

// ", dscp 46 (ef)" for the end of a line of the log; empty for kNoTrafficClass.
std::string TrafficClassSuffix(int octet);

}  // namespace tcpx
