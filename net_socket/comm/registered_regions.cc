#include "net_socket/comm/registered_regions.h"

#include <utility>

#include "net_socket/comm/connection_setup.h"
#include "net_socket/comm/runtime.h"
#include "net_socket/gpu/gpu_hub.h"

namespace tcpx {

absl::StatusOr<GpuPool*> RegisteredRegions::FindPool(const void* data, MemoryType type) const {
  GpuHub* const gpu = setup_->runtime->gpu.get();
  if (type == MemoryType::kHost) {
    absl::Status status = gpu == nullptr ? absl::OkStatus() : gpu->CheckHost(data);
    if (!status.ok()) return status;
    return nullptr;
  }
  if (gpu == nullptr || type != MemoryType::kCuda) {
    return absl::InvalidArgumentError(
        "regMr: this kind of memory was not announced: register host memory as NCCL_PTR_HOST; GPU memory needs "
        "TCPX_GPU_DIRECT_STAGING=1");
  }
  return gpu->PoolFor(data, setup_->device, direction_ == Direction::kSend);
}

absl::StatusOr<std::unique_ptr<MemoryRegion>> RegisteredRegions::Make(void* data, size_t bytes, MemoryType type) const {
  auto pool = FindPool(data, type);
  if (!pool.ok()) return pool.status();
  auto region = std::make_unique<MemoryRegion>();
  region->data = static_cast<char*>(data);
  region->bytes = bytes;
  region->gpu = *pool;
  return region;
}

MemoryRegion* RegisteredRegions::Add(std::unique_ptr<MemoryRegion> region) {
  MemoryRegion* const raw = region.get();
  regions_[raw] = std::move(region);
  return raw;
}

}  // namespace tcpx
