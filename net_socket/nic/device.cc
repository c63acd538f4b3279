#include "net_socket/nic/device.h"

#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/log.h"
#include "net_socket/nic/device_params.h"
#include "net_socket/nic/routing.h"

namespace tcpx {
namespace {

// As NCCL's socket transport (2.12 to 2.30).
constexpr int kMaxComms = 65536;
constexpr size_t kMaxCollectiveBytes = size_t{512} << 20;

// The same interface by its address of the other family; null: it has none.
const Nic* OtherOf(const Device& device, const Nic& nic) {
  for (const Nic& other : device.other_nics) {
    if (other.interface.name == nic.interface.name) return &other;
  }
  return nullptr;
}

void LogDevice(const Device& device, const std::vector<Interface>& all, const std::string& sysfs_root) {
  for (const Nic& nic : device.nics) {
    const std::string caution = InterfaceCaution(all, nic.interface, sysfs_root);
    const Nic* const other = OtherOf(device, nic);
    const std::string also = other == nullptr ? "" : " and " + other->interface.address.HostString();
    const std::string kind = InterfaceKind(nic.interface.name, nic.interface.flags, sysfs_root);
    TCPX_INFO("device %d: %s %s%s, %s, %d Mbit/s%s%s%s", device.index, nic.interface.name,
              nic.interface.address.HostString(), also, kind, nic.hardware.speed_mbps, SpeedOrigin(nic.hardware),
              caution.empty() ? "" : "; ", caution);
    if (nic.hardware.speed_source != SpeedSource::kVirtual) continue;
    TCPX_INFO(
        "device %d: the real speed of %s can't be seen from here: TCPX_SPEED_MBPS=%s=MBPS sets it, and NCCL's "
        "channels and algorithms follow it",
        device.index, nic.interface.name, nic.interface.name);
  }
}

// One line, however many there are.
void WarnOfSharedSubnets(const std::vector<Interface>& chosen) {
  std::vector<std::string> names;
  for (const Interface& interface : chosen) {
    if (SharersOfSubnet(interface, chosen).empty()) continue;
    if (!KeepsToItself(interface, ReadArpRules("/proc", interface.name))) names.push_back(interface.name);
  }
  if (names.empty()) return;
  TCPX_WARN(
      "%s share a subnet, and the kernel lets each answer for the others: their sockets are not tied to them, and most "
      "traffic may go through one. To use them all: sysctl -w net.ipv4.conf.all.arp_ignore=1 "
      "net.ipv4.conf.all.arp_announce=2 net.ipv4.conf.all.rp_filter=2",
      absl::StrJoin(names, ", "));
}

Nic MakeNic(const Options& options, const Interface& interface, const std::vector<Interface>& all,
            const std::string& sysfs_root) {
  Nic nic;
  nic.interface = interface;
  nic.hardware = ReadHardware(sysfs_root, interface.name);
  OverrideSpeed(options.speed_mbps, interface.name, &nic.hardware);
  const bool shares = !SharersOfSubnet(interface, all).empty();
  nic.ties = shares && KeepsToItself(interface, ReadArpRules("/proc", interface.name));
  return nic;
}

std::vector<FuseCandidate> CandidatesOf(const std::vector<Device>& devices) {
  std::vector<FuseCandidate> candidates;
  for (const Device& device : devices) {
    for (const Nic& nic : device.nics) {
      const Nic* const other = OtherOf(device, nic);
      candidates.push_back({nic.interface, std::nullopt});
      if (other != nullptr) candidates.back().other = other->interface;
    }
  }
  return candidates;
}

// Those interfaces come first whose addresses all members have.
Device Joined(const std::vector<Device>& members) {
  Device joined;
  const int family = FamilyOfAll(CandidatesOf(members));
  for (const Device& member : members) {
    for (const auto* nics : {&member.nics, &member.other_nics}) {
      for (const Nic& nic : *nics) {
        (nic.interface.address.family() == family ? joined.nics : joined.other_nics).push_back(nic);
      }
    }
    joined.max_receives = member.max_receives;
  }
  return joined;
}

}  // namespace

const std::vector<Nic>& Device::NicsFor(int family) const {
  return !other_nics.empty() && other_nics.front().interface.address.family() == family ? other_nics : nics;
}

int Device::speed_mbps() const {
  int sum = 0;
  for (const Nic& nic : nics) sum += nic.hardware.speed_mbps;
  return sum;
}

int MaxReceives(const Options& options, int pointer_support) {
  if (options.max_receives > 0) return options.max_receives;
  return (pointer_support & static_cast<int>(MemoryType::kCuda)) != 0 ? kReceivesMax : 1;
}

const Device& DeviceTable::Add(Device device) {
  device.index = count();
  device.name = absl::StrJoin(device.nics, "+", [](std::string* out, const Nic& nic) { *out += nic.interface.name; });
  if (device.fused()) TCPX_INFO("device %d: %s, %d Mbit/s together", device.index, device.name, device.speed_mbps());
  devices_.push_back(std::move(device));
  return devices_.back();
}

DeviceTable DeviceTable::Find(const Options& options, const std::string& sysfs_root, bool gpu) {
  DeviceTable table;
  if (gpu) table.pointer_support_ |= static_cast<int>(MemoryType::kCuda);
  auto all = SystemInterfaces();
  if (!all.ok()) {
    TCPX_WARN("no devices: %s", std::string(all.status().message()));
    return table;
  }
  // Only the search without a list looks at the rendezvous address.
  const std::string comm_id = options.ifname.empty() ? ResolveCommId(options.comm_id) : "";
  const InterfaceFilter filter = {options.ifname, options.family, comm_id};
  const std::vector<Interface> chosen = SelectInterfaces(*all, filter);
  std::vector<std::string> warnings;
  std::vector<Device> singles;
  for (const Interface& interface : chosen) {
    Device& single = singles.emplace_back();
    single.nics.push_back(MakeNic(options, interface, *all, sysfs_root));
    const std::optional<Interface> other = OtherFamilyOf(interface, *all, filter);
    if (other.has_value()) single.other_nics.push_back(MakeNic(options, *other, *all, sysfs_root));
    single.max_receives = MaxReceives(options, table.pointer_support_);
  }
  for (const std::vector<int>& indices : PlanFusion(options.fuse, CandidatesOf(singles), &warnings)) {
    std::vector<Device> members;
    for (int index : indices) members.push_back(singles[static_cast<size_t>(index)]);
    LogDevice(table.Add(Joined(members)), *all, sysfs_root);
  }
  for (const std::string& warning : CheckSpeeds(options.speed_mbps, chosen)) warnings.push_back(warning);
  for (const std::string& warning : warnings) TCPX_WARN("%s", warning);
  WarnOfSharedSubnets(chosen);
  const std::string skipped = SkippedInterfaces(*all, chosen, filter, sysfs_root);
  if (table.count() == 0) {
    TCPX_WARN(
        "no usable network interface: NCCL_SOCKET_IFNAME='%s' NCCL_SOCKET_FAMILY='%s' matches none that is up and "
        "running; there are: %s",
        options.ifname, options.family, skipped.empty() ? "none" : skipped);
  } else if (!skipped.empty()) {
    TCPX_INFO("interfaces not used: %s; to change: NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY", skipped);
  }
  return table;
}

absl::Status DeviceTable::CheckChild(int child) const {
  if (child < 0 || child >= count()) {
    return absl::InvalidArgumentError(absl::StrFormat("device %d: there are %d devices", child, count()));
  }
  const Device& device = devices_[static_cast<size_t>(child)];
  if (!device.children.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat("device %d (%s) is a virtual one itself", child, device.name));
  }
  if (device.first().hardware.pci_path.empty()) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "device %d (%s) is on no PCI bus: NCCL can't use a device made of it; fuse it with TCPX_FUSE instead", child,
        device.name));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> DeviceTable::Fuse(absl::Span<const int> children) {
  std::vector<Device> members;
  for (int child : children) {
    const absl::Status usable = CheckChild(child);
    if (!usable.ok()) return usable;
    members.push_back(device(child));
  }
  const std::string reason = WhyNotFused(CandidatesOf(members));
  if (!reason.empty()) return absl::InvalidArgumentError(reason);
  Device fused = Joined(members);
  fused.children.assign(children.begin(), children.end());
  return Add(std::move(fused)).index;
}

DeviceProperties DeviceTable::Properties(int index) const {
  const Device& device = devices_[static_cast<size_t>(index)];
  const std::string& pci_path = device.first().hardware.pci_path;
  DeviceProperties properties;
  properties.name = device.name.c_str();
  properties.pci_path = pci_path.empty() ? nullptr : pci_path.c_str();
  properties.guid = static_cast<uint64_t>(index);
  properties.pointer_support = pointer_support_;
  properties.speed_mbps = device.speed_mbps();
  properties.latency_us = 0;  // As NCCL's socket transport, so that NCCL's tuning model chooses alike.
  properties.max_comms = kMaxComms;
  properties.max_receives = device.max_receives;
  properties.max_p2p_bytes = size_t{1} << 40;
  properties.max_collective_bytes = kMaxCollectiveBytes;
  properties.children = device.children.empty() ? std::vector<int>{index} : device.children;
  return properties;
}

}  // namespace tcpx
