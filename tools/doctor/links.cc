// The devices' links: MTU, driver, offloads, queues, queueing discipline.
#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tools/doctor/link_facts.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr int kFastMbps = 10000;
constexpr int kEthernetMtu = 1500;
constexpr int kMtuLeast = 1280;  // IPv6 demands it (RFC 8200, 5)

std::string LinkText(const std::string& name, const LinkFacts& facts, const std::string& off) {
  std::vector<std::string> parts;
  parts.push_back(absl::StrCat(name, ": mtu ", facts.mtu));
  parts.push_back(facts.driver.empty() ? "driver unknown" : absl::StrCat("driver ", facts.driver));
  parts.push_back(off.empty() ? "offloads on" : absl::StrCat("off: ", off));
  if (facts.queues > 0) parts.push_back(absl::StrCat(facts.queues, " of ", facts.queues_max, " queues"));
  if (!facts.qdisc.empty()) parts.push_back(absl::StrCat("qdisc ", facts.qdisc));
  return absl::StrJoin(parts, ", ");
}

void CheckMtu(const Nic& nic, const std::string& kind, const LinkFacts& facts, Report* report) {
  const std::string& name = nic.interface.name;
  if (facts.mtu > 0 && facts.mtu < kMtuLeast) {
    report->Problem("link", absl::StrCat(name, ": an mtu of ", facts.mtu, " is below what IPv6 and most tunnels need"),
                    absl::StrCat("ip link set dev ", name, " mtu ", kEthernetMtu));
  } else if (nic.hardware.speed_source == SpeedSource::kKernel && facts.mtu <= kEthernetMtu &&
             nic.hardware.speed_mbps >= kFastMbps && kind != "loopback") {
    report->Note("link",
                 absl::StrCat(name, ": an mtu of ", facts.mtu, " at ", nic.hardware.speed_mbps,
                              " Mbit/s costs CPU time that 9000 would not"),
                 absl::StrCat("ip link set dev ", name, " mtu 9000, on every host, once the switches pass it"));
  }
}

void CheckLink(const Nic& nic, const std::string& kind, const LinkFacts& facts, Report* report) {
  const std::string& name = nic.interface.name;
  const std::string off = OffloadsOff(facts, nic.hardware.is_virtual);
  report->Ok("link", LinkText(name, facts, off));
  CheckMtu(nic, kind, facts, report);
  // A tunnel can't, and loopback has nothing to gain.
  if (!off.empty() && kind != "loopback" && kind != "tunnel") {
    report->Problem("link",
                    absl::StrCat(name, ": offloads are off: ", off, "; each packet then costs CPU time by itself"),
                    absl::StrCat("ethtool -K ", name, " ", absl::StrReplaceAll(off, {{",", " on"}}), " on"));
  }
  const bool known = nic.hardware.speed_source == SpeedSource::kKernel;
  if (known && facts.queues == 1 && facts.queues_max > 1 && nic.hardware.speed_mbps >= kFastMbps) {
    report->Note("link", absl::StrCat(name, ": one queue of ", facts.queues_max, ": one CPU takes all interrupts"),
                 absl::StrCat("ethtool -L ", name, " combined ", std::min(facts.queues_max, 16)));
  }
  const std::set<std::string> shapers = {"tbf", "netem", "cbs", "hfsc", "htb"};
  if (shapers.count(facts.qdisc) > 0) {
    report->Note("link",
                 absl::StrCat(name, ": the queueing discipline ", facts.qdisc,
                              " may limit what leaves (tc -s qdisc show dev ", name, ")"),
                 absl::StrCat("tc qdisc delete dev ", name, " root, unless it is meant"));
  }
}

}  // namespace

void CheckLinks(const Patient& patient, Report* report) {
  std::set<int> mtus;
  std::vector<std::string> texts;
  for (int i = 0; i < patient.devices.count(); ++i) {
    for (const Nic& nic : patient.devices.device(i).nics) {
      const std::string& name = nic.interface.name;
      const LinkFacts facts = ReadLinkFacts(name);
      CheckLink(nic, InterfaceKind(name, nic.interface.flags, patient.root + "/sys"), facts, report);
      mtus.insert(facts.mtu);
      texts.push_back(absl::StrCat(name, " ", facts.mtu));
    }
  }
  if (mtus.size() < 2) return;
  report->Note("link", absl::StrCat("the devices differ in their mtu: ", absl::StrJoin(texts, ", ")),
               absl::StrCat("ip link set dev NAME mtu ", *mtus.rbegin(), ", where the network passes it"));
}

}  // namespace doctor
}  // namespace tcpx
