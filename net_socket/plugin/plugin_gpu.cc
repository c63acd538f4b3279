// Whether GPU memory is announced.
#include <algorithm>

#include "common/log.h"
#include "net_socket/plugin/plugin.h"

namespace tcpx {

// Receives of LL and LL128 must be told apart (receive_staging.h); versions before v9 do not show the hint.
bool Plugin::OpenGpuDriver() {
  if (!options_.gpu_direct_staging) return false;
  const bool shows_hint =
      std::any_of(contexts_.begin(), contexts_.end(), [](const auto& entry) { return entry.second->api_version >= 9; });
  if (!shows_hint) {
    TCPX_INFO("TCPX_GPU_DIRECT_STAGING=1 has no effect: this NCCL uses a network interface older than v9");
    return false;
  }
  auto driver = GpuDriver::Load();
  if (!driver.ok()) {
    TCPX_INFO("TCPX_GPU_DIRECT_STAGING=1 has no effect, host memory only: %s", std::string(driver.status().message()));
    return false;
  }
  gpu_driver_ = *std::move(driver);
  return true;
}

std::vector<int> Plugin::NumaNodes() const {
  std::vector<int> nodes;
  for (int i = 0; i < devices_->count(); ++i) nodes.push_back(devices_->device(i).first().hardware.numa_node);
  return nodes;
}

}  // namespace tcpx
