// What /sys says about an interface; the choice of interfaces is in interfaces.cc.
#include <limits.h>
#include <net/if.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/interfaces.h"
#include "common/small_file.h"

namespace tcpx {
namespace {

std::string RealPath(const std::string& path) {
  char resolved[PATH_MAX];
  return realpath(path.c_str(), resolved) != nullptr ? std::string(resolved) : std::string();
}

std::string LastComponent(const std::string& path) { return path.substr(path.rfind('/') + 1); }

int ReadNumber(const std::string& path, int fallback) {
  int value = 0;
  return absl::SimpleAtoi(ReadSmallFile(path).value_or(""), &value) ? value : fallback;
}

// "0x1d0f"; 0 for anything else.
int ReadHex(const std::string& path) {
  int value = 0;
  return absl::SimpleHexAtoi(ReadSmallFile(path).value_or(""), &value) ? value : 0;
}

bool Exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

// "DEVTYPE=vlan" of the interface's uevent file; a veth has none.
std::string DeviceType(const std::string& folder) {
  return std::string(ValueIn(ReadSmallFile(folder + "/uevent").value_or(""), "DEVTYPE="));
}

bool IsTunnel(const std::string& folder, const std::string& device_type, unsigned flags) {
  // Hardware types of net/if_arp.h that carry packets inside packets: ARPHRD_TUNNEL, _TUNNEL6, _SIT, _IPGRE, _IP6GRE
  // and _NONE (tun, WireGuard).
  constexpr int kTypes[] = {768, 769, 776, 778, 823, 65534};
  const int type = ReadNumber(folder + "/type", 0);
  if ((flags & IFF_POINTOPOINT) != 0 || Exists(folder + "/tun_flags")) return true;
  if (std::find(std::begin(kTypes), std::end(kTypes), type) != std::end(kTypes)) return true;
  return device_type == "vxlan" || device_type == "geneve" || device_type == "wireguard";
}

// A veth's iflink is the index of its other end, often one in another namespace (macvlan and ipvlan have a type).
bool IsVethPair(const std::string& folder, const std::string& device_type) {
  const int link = ReadNumber(folder + "/iflink", 0);
  return device_type.empty() && link > 0 && link != ReadNumber(folder + "/ifindex", link);
}

}  // namespace

InterfaceHardware ReadHardware(const std::string& sysfs_root, const std::string& ifname) {
  InterfaceHardware hardware;
  const std::string folder = absl::StrCat(sysfs_root, "/class/net/", ifname);
  const int speed = ReadNumber(folder + "/speed", 0);
  if (speed > 0) hardware.speed_mbps = speed;
  const std::string device = RealPath(folder + "/device");
  const std::string bus = device.empty() ? "" : LastComponent(RealPath(device + "/subsystem"));
  hardware.is_virtual = device.empty();
  if (speed <= 0) {
    hardware.speed_source = SpeedSource::kAssumed;
  } else if (bus == "virtio" || (device.empty() && DeviceType(folder).empty())) {
    hardware.speed_source = SpeedSource::kVirtual;
  }
  if (device.empty()) return hardware;
  hardware.vendor = ReadHex(device + "/vendor");
  hardware.numa_node = ReadNumber(device + "/numa_node", -1);
  if (bus != "pci") return hardware;
  hardware.pci_path = device;
  hardware.pci_bus_id = LastComponent(device);
  return hardware;
}

std::string InterfaceKind(const std::string& name, unsigned flags, const std::string& sysfs_root) {
  const std::string folder = absl::StrCat(sysfs_root, "/class/net/", name);
  const std::string device_type = DeviceType(folder);
  if ((flags & IFF_LOOPBACK) != 0) return "loopback";
  if (Exists(folder + "/bridge")) return absl::StartsWith(name, "docker") ? "docker bridge" : "bridge";
  if (Exists(folder + "/bonding")) return "bond";
  if (device_type == "vlan") return "vlan";
  if (Exists(folder + "/device")) return "physical";
  if (IsTunnel(folder, device_type, flags)) return "tunnel";
  return IsVethPair(folder, device_type) ? "veth pair" : "virtual";
}

bool HasLinkLocalOnly(const std::vector<Interface>& all, const std::string& name) {
  return std::none_of(all.begin(), all.end(),
                      [&](const Interface& one) { return one.name == name && !one.address.IsLinkLocal(); });
}

std::string InterfaceCaution(const std::vector<Interface>& all, const Interface& chosen,
                             const std::string& sysfs_root) {
  const std::string kind = InterfaceKind(chosen.name, chosen.flags, sysfs_root);
  std::vector<const char*> cautions;
  if (kind == "loopback") cautions.push_back("reaches this host only");
  if (kind == "docker bridge") cautions.push_back("is a docker bridge, which other hosts mostly can't reach");
  if (kind == "tunnel") cautions.push_back("is a tunnel, which costs speed");
  if (kind == "veth pair") cautions.push_back("is an end of a veth pair, as containers have, and not a network card");
  if (HasLinkLocalOnly(all, chosen.name)) {
    cautions.push_back("has link-local addresses only, which reach hosts on the same link only");
  } else if (chosen.address.IsLinkLocal()) {
    cautions.push_back("is used by its link-local address, which reaches hosts on the same link only");
  }
  if (cautions.empty()) return "";
  return absl::StrCat(absl::StrJoin(cautions, ", and "), "; NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose another");
}

}  // namespace tcpx
