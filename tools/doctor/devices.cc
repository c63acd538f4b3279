// Which interfaces become devices, and what is odd about them.
#include <net/if.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "net_socket/nic/device_params.h"
#include "tools/doctor/local_checks.h"

namespace tcpx {
namespace doctor {
namespace {

constexpr char kChoose[] =
    "export NCCL_SOCKET_IFNAME==NAME, with the interface that reaches the other hosts (ip -br address)";

std::string SpeedText(const InterfaceHardware& hardware) {
  const std::string origin = SpeedOrigin(hardware);
  return absl::StrCat(hardware.speed_mbps, " Mbit/s", origin.empty() ? " (the kernel's)" : origin);
}

// What an interface is unfit for; empty where nothing is wrong. It decides whether InterfaceCaution's words are a
// problem.
bool StaysHere(const Patient& patient, const Nic& nic, const std::string& kind) {
  return kind == "loopback" || kind == "docker bridge" || HasLinkLocalOnly(patient.interfaces, nic.interface.name);
}

// What docker and libvirt give the bridge of every host.
bool IsUsualBridgeAddress(const SocketAddress& address) {
  for (const char* usual : {"172.17.0.1", "172.18.0.1", "192.168.122.1", "10.88.0.1", "10.0.3.1"}) {
    const auto parsed = SocketAddress::Parse(usual);
    if (parsed.ok() && address.SameHostAddress(*parsed)) return true;
  }
  return false;
}

void CheckNic(const Patient& patient, int index, const Nic& nic, Report* report) {
  const std::string& name = nic.interface.name;
  const std::string sys = patient.root + "/sys";
  const std::string kind = InterfaceKind(name, nic.interface.flags, sys);
  const int node = nic.hardware.numa_node;
  report->Ok("device", absl::StrCat("device ", index, ": ", name, " ", nic.interface.address.HostString(), "/",
                                    nic.interface.prefix_bits, ", ", kind, ", ", SpeedText(nic.hardware),
                                    ", NUMA node ", node < 0 ? "unknown" : absl::StrCat(node),
                                    nic.hardware.pci_bus_id.empty() ? "" : ", PCI ", nic.hardware.pci_bus_id));
  const std::string caution = InterfaceCaution(patient.interfaces, nic.interface, sys);
  if (!caution.empty()) {
    const Grade grade = StaysHere(patient, nic, kind) ? Grade::kProblem : Grade::kNote;
    report->Add(grade, "device", absl::StrCat(name, " ", caution), kChoose);
  }
  const SpeedSource source = nic.hardware.speed_source;
  if (source == SpeedSource::kVirtual || source == SpeedSource::kAssumed) {
    report->Note(
        "device",
        absl::StrCat("the real speed of ", name, " can't be seen from here: NCCL and the number of lanes follow ",
                     nic.hardware.speed_mbps, " Mbit/s"),
        absl::StrCat("export TCPX_SPEED_MBPS=", name, "=MBPS"));
  }
  if (IsUsualBridgeAddress(nic.interface.address)) {
    report->Problem("address",
                    absl::StrCat(nic.interface.address.HostString(), " of ", name,
                                 " is what docker, podman, lxc and libvirt give every host's bridge: other hosts have "
                                 "it too, and would dial themselves"),
                    absl::StrCat("export NCCL_SOCKET_IFNAME=^", name, ",lo"));
  }
}

// One address on several interfaces, here.
void CheckDuplicates(const Patient& patient, Report* report) {
  std::map<std::string, std::set<std::string>> holders;
  for (const Interface& one : patient.interfaces) {
    const bool up = (one.flags & IFF_UP) != 0;
    if (up && !one.address.IsLinkLocal()) holders[one.address.HostString()].insert(one.name);
  }
  for (const auto& [address, names] : holders) {
    if (names.size() < 2) continue;
    report->Problem("address",
                    absl::StrCat(address, " is on several interfaces: ", absl::StrJoin(names, ", "),
                                 "; answers leave by one of them only"),
                    absl::StrCat("ip address delete ", address, " dev ", *names.rbegin()));
  }
}

// NCCL takes every device for one that it may use.
void CheckUnequalSpeeds(const Patient& patient, Report* report) {
  const Device* slow = nullptr;
  const Device* fast = nullptr;
  for (int i = 0; i < patient.devices.count(); ++i) {
    const Device& device = patient.devices.device(i);
    if (device.first().hardware.speed_source == SpeedSource::kAssumed) continue;
    if (slow == nullptr || device.speed_mbps() < slow->speed_mbps()) slow = &device;
    if (fast == nullptr || device.speed_mbps() > fast->speed_mbps()) fast = &device;
  }
  if (slow == nullptr || slow->speed_mbps() * 4 > fast->speed_mbps()) return;
  report->Note("device",
               absl::StrFormat("%s has %d Mbit/s and %s %d: is the slow one for management?", slow->name,
                               slow->speed_mbps(), fast->name, fast->speed_mbps()),
               absl::StrCat("export NCCL_SOCKET_IFNAME==", fast->name));
}

std::string FixWarning(const std::string& warning) {
  const size_t sysctl = warning.find("sysctl -w");
  if (sysctl != std::string::npos) return warning.substr(sysctl);
  for (const char* name : {"TCPX_SPEED_MBPS", "TCPX_FUSE"}) {
    if (absl::StrContains(warning, name)) return absl::StrCat("correct ", name, " (docs/parameters.md)");
  }
  return kChoose;
}

}  // namespace

void CheckDevices(const Patient& patient, Report* report) {
  for (const std::string& warning : patient.device_warnings) {
    report->Problem("device", warning, FixWarning(warning));
  }
  for (const std::string& info : patient.device_infos) {
    if (absl::StartsWith(info, "interfaces not used")) report->Ok("device", info);
  }
  for (int i = 0; i < patient.devices.count(); ++i) {
    const Device& device = patient.devices.device(i);
    if (device.fused()) {
      report->Ok("device",
                 absl::StrCat("device ", i, ": ", device.name, ", ", device.speed_mbps(), " Mbit/s together"));
    }
    for (const Nic& nic : device.nics) CheckNic(patient, i, nic, report);
    for (const Nic& nic : device.other_nics) {
      report->Ok("device", absl::StrCat("device ", i, ": ", nic.interface.name, " offers ",
                                        nic.interface.address.HostString(), " too"));
    }
  }
  CheckDuplicates(patient, report);
  CheckUnequalSpeeds(patient, report);
}

}  // namespace doctor
}  // namespace tcpx
