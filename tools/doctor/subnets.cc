// Interfaces of one host in one subnet.
#include "absl/strings/str_cat.h"
#include "tools/doctor/greeting.h"

namespace tcpx {
namespace doctor {

void CheckSharedSubnets(const PeerFacts& facts, Report* report) {
  for (const PeerLink& link : facts.links) {
    if (link.shares.empty()) continue;
    const std::string text = absl::StrCat(facts.host, ": ", link.name, " ", link.address.HostString(), " and ",
                                          link.shares, " are in one subnet: packets for one may arrive at another",
                                          link.drops ? ", and rp_filter=1 drops them" : "");
    report->Add(link.drops ? Grade::kProblem : Grade::kNote, "pair", text,
                "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 "
                "net.ipv4.conf.all.rp_filter=2, or give each interface a subnet of its own");
  }
}

}  // namespace doctor
}  // namespace tcpx
