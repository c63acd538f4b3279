// announced_devices.h: the devices that NCCL is shown, and the GPU's driver where GPU memory is announced with them.
//
// Purpose: found once, with the first question about a device.
// Threads: under the plugin's mutex; gpu_driver from any. Lifetime: the plugin's, which outlives the transports.
// Errors:  Check: kFailedPrecondition. GPU memory that can't be announced is an INFO, and host memory only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/params.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/nic/device.h"

namespace tcpx {

class AnnouncedDevices {
 public:
  // `shows_hint`: this NCCL tells receives of LL and LL128 apart (v9 and up), without which GPU memory is not
  // announced.
  AnnouncedDevices(const Options& options, const std::string& sysfs_root, bool shows_hint);

  DeviceTable& table() { return table_; }
  absl::Status Check(int device) const;
  // Null: host memory only. GPU memory that only one-sided transfers use is not announced: the tables of both have the
  // same properties.
  const GpuDriver* gpu_driver() const { return gpu_driver_.get(); }
  // The NUMA node of each device's first network card.
  std::vector<int> NumaNodes() const;

 private:
  std::unique_ptr<GpuDriver> gpu_driver_;
  DeviceTable table_;
};

// Shown where there is none and one must be: no listen and no connect takes it.
DeviceProperties NoDevice();

}  // namespace tcpx
