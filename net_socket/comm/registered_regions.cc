#include "net_socket/comm/registered_regions.h"

#include <utility>

#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/gpu/gpu_hub.h"

namespace tcpx {

absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisteredRegions::Make(void* data, size_t bytes, MemoryType type) const {
  auto region = std::make_unique<MemoryRegion>();
  region->data = static_cast<char*>(data);
  region->bytes = bytes;
  GpuHub* const gpu = setup_->runtime->gpu.get();
  if (type == MemoryType::kHost) {
    absl::Status status = gpu == nullptr ? absl::OkStatus() : gpu->CheckHost(data);
    if (!status.ok()) return status;
    return region;
  }
  if (gpu == nullptr || type != MemoryType::kCuda) {
    return absl::InvalidArgumentError(
        "regMr: this kind of memory was not announced: register host memory as NCCL_PTR_HOST; GPU memory needs "
        "TCPX_GPU_DIRECT_STAGING=1");
  }
  auto pool = gpu->PoolFor(data, setup_->device, setup_->sends());
  if (!pool.ok()) return pool.status();
  region->gpu = *pool;
  return region;
}

MemoryRegion* RegisteredRegions::Add(std::unique_ptr<MemoryRegion> region) {
  MemoryRegion* const raw = region.get();
  regions_[raw] = std::move(region);
  return raw;
}

}  // namespace tcpx
