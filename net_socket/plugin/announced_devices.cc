#include "net_socket/plugin/announced_devices.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "common/log.h"

namespace tcpx {
namespace {

// Receives of LL and LL128 must be distinguished (receive_staging.h); versions before v9 do not show the hint.
std::unique_ptr<GpuDriver> OpenGpuDriver(const Options& options, bool shows_hint) {
  if (!options.gpu_direct_staging) return nullptr;
  if (!shows_hint) {
    TCPX_WARN("TCPX_GPU_DIRECT_STAGING has no effect: this NCCL uses a network interface older than v9");
    return nullptr;
  }
  auto driver = GpuDriver::Load();
  if (!driver.ok()) {
    TCPX_WARN("TCPX_GPU_DIRECT_STAGING has no effect, host memory only: %s", driver.status().message());
    return nullptr;
  }
  return *std::move(driver);
}

}  // namespace

AnnouncedDevices::AnnouncedDevices(const Options& options, const std::string& sysfs_root, bool shows_hint)
    : gpu_driver_(OpenGpuDriver(options, shows_hint)),
      table_(DeviceTable::Find(options, sysfs_root, gpu_driver_ != nullptr)) {
  if (gpu_driver_ != nullptr || !options.rma) return;
  auto driver = GpuDriver::Load();
  if (driver.ok()) gpu_driver_ = *std::move(driver);
}

absl::Status AnnouncedDevices::Check(int device) const {
  if (device >= 0 && device < table_.count()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrFormat("device %d: there are %d devices", device, table_.count()));
}

std::vector<int> AnnouncedDevices::NumaNodes() const {
  std::vector<int> nodes;
  for (int i = 0; i < table_.count(); ++i) nodes.push_back(table_.device(i).first().hardware.numa_node);
  return nodes;
}

DeviceProperties NoDevice() {
  DeviceProperties properties;
  properties.name = "tcpx-none";
  properties.pointer_support = static_cast<int>(MemoryType::kHost);
  properties.speed_mbps = 1000;
  properties.max_comms = 1;
  properties.max_receives = 1;
  properties.max_p2p_bytes = size_t{1} << 40;
  properties.max_collective_bytes = size_t{1} << 40;
  properties.children = {0};
  return properties;
}

}  // namespace tcpx
