#include "net_socket/device.h"

#include "absl/strings/str_format.h"
#include "common/log.h"

namespace tcpx {
namespace {

// As NCCL's socket transport (2.12 to 2.30).
constexpr int kMaxComms = 65536;
constexpr size_t kMaxCollectiveBytes = size_t{512} << 20;

constexpr int kPointerSupport = static_cast<int>(MemoryType::kHost);

void LogDevice(const Device& device, const std::vector<Interface>& all, const std::string& sysfs_root) {
  const std::string caution = InterfaceCaution(all, device.interface, sysfs_root);
  TCPX_INFO("device %d: %s %s, %s, %d Mbit/s%s%s", device.index, device.interface.name,
            device.interface.address.HostString(),
            InterfaceKind(device.interface.name, device.interface.flags, sysfs_root), device.hardware.speed_mbps,
            caution.empty() ? "" : "; ", caution);
}

}  // namespace

int MaxReceives(const Options& options, int pointer_support) {
  if (options.max_receives > 0) return options.max_receives;
  return (pointer_support & static_cast<int>(MemoryType::kCuda)) != 0 ? kMaxGroupedReceives : 1;
}

DeviceTable DeviceTable::Find(const Options& options, const std::string& sysfs_root) {
  DeviceTable table;
  auto all = SystemInterfaces();
  if (!all.ok()) {
    TCPX_WARN("no devices: %s", std::string(all.status().message()));
    return table;
  }
  // Only the search without a list looks at the rendezvous address.
  const std::string comm_id = options.ifname.empty() ? ResolveCommId(options.comm_id) : "";
  for (const Interface& chosen : SelectInterfaces(*all, {options.ifname, options.family, comm_id})) {
    table.devices_.push_back(
        {table.count(), chosen, ReadHardware(sysfs_root, chosen.name), MaxReceives(options, kPointerSupport)});
    LogDevice(table.devices_.back(), *all, sysfs_root);
  }
  if (table.count() == 0) {
    TCPX_WARN(
        "no usable network interface: NCCL_SOCKET_IFNAME='%s' NCCL_SOCKET_FAMILY='%s' matches none that is up and "
        "running",
        options.ifname, options.family);
  }
  return table;
}

DeviceProperties DeviceTable::Properties(int index) const {
  const Device& device = devices_[static_cast<size_t>(index)];
  DeviceProperties properties;
  properties.name = device.interface.name.c_str();
  properties.pci_path = device.hardware.pci_path.empty() ? nullptr : device.hardware.pci_path.c_str();
  properties.guid = static_cast<uint64_t>(index);
  properties.pointer_support = kPointerSupport;
  properties.speed_mbps = device.hardware.speed_mbps;
  properties.port = 0;
  properties.latency_us = 0;  // As NCCL's socket transport, so that NCCL's tuning model chooses alike.
  properties.max_comms = kMaxComms;
  properties.max_receives = device.max_receives;
  properties.max_p2p_bytes = size_t{1} << 40;
  properties.max_collective_bytes = kMaxCollectiveBytes;
  properties.children = {index};
  return properties;
}

}  // namespace tcpx
