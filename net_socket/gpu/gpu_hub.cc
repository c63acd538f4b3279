#include "net_socket/gpu/gpu_hub.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/log.h"

namespace tcpx {
namespace {

// What kind of memory the driver takes it for; none: it does not know it.
std::optional<unsigned> MemoryTypeOf(const GpuApi& api, const void* data) {
  unsigned type = 0;
  const bool known = api.pointer_get_attribute(&type, kCuPointerMemoryType, CuAddressOf(data)) == kCuSuccess;
  return known ? std::optional<unsigned>(type) : std::nullopt;
}

}  // namespace

GpuHub::GpuHub(const GpuDriver* driver, const Options& options)
    : driver_(driver),
      slot_bytes_(static_cast<size_t>(options.gpu_slot_bytes) / 4096 * 4096),
      slots_(std::max<size_t>(static_cast<size_t>(options.gpu_pool_bytes) / slot_bytes_, 1)),
      uses_gdr_(options.rma_gdrcopy),
      patience_(options.peer_timeout_ns) {}

// The end of a context waits for what is under way in it.
GpuHub::~GpuHub() {
  writers_.clear();
  bool stuck = false;
  for (const auto& pool : pools_) stuck = !pool->AwaitCopies() || stuck;
  pools_.clear();
  if (stuck) return;
  for (const auto& [gpu, context] : retained_) (void)driver_->api().primary_release(gpu);
}

void GpuHub::SetNumaNodes(std::vector<int> nodes) {
  MutexLock lock(mutex_);
  numa_nodes_ = std::move(nodes);
}

absl::StatusOr<CuContext> GpuHub::Primary(int gpu) {
  const auto known = retained_.find(gpu);
  if (known != retained_.end()) return known->second;
  CuContext context = nullptr;
  const absl::Status status = driver_->Check(driver_->api().primary_retain(&context, gpu), "cuDevicePrimaryCtxRetain");
  if (!status.ok()) return status;
  return retained_[gpu] = context;
}

// Memory mapped with cuMemMap (NCCL_CUMEM_ENABLE) belongs to no context: the primary one reaches it, as NCCL does.
absl::StatusOr<GpuPlace> GpuHub::PlaceOf(const void* data) {
  const GpuApi& api = driver_->api();
  unsigned type = 0;
  absl::Status status = driver_->Check(api.pointer_get_attribute(&type, kCuPointerMemoryType, CuAddressOf(data)),
                                       "cuPointerGetAttribute");
  if (!status.ok() || type != kCuMemoryDevice) {
    return absl::InvalidArgumentError(
        absl::StrFormat("regMr: %p was given as GPU memory, but is not: %s", data,
                        status.ok() ? "the CUDA driver calls it host memory" : std::string(status.message())));
  }
  GpuPlace place;
  status = driver_->Check(api.pointer_get_attribute(&place.device, kCuPointerDevice, CuAddressOf(data)),
                          "cuPointerGetAttribute");
  if (!status.ok()) return status;
  if (api.pointer_get_attribute(&place.context, kCuPointerContext, CuAddressOf(data)) != kCuSuccess) {
    place.context = nullptr;
  }
  auto primary = Primary(place.device);
  if (!primary.ok()) return primary.status();
  if (place.context == nullptr) place.context = *primary;
  return place;
}

absl::StatusOr<GpuPool*> GpuHub::PoolFor(const void* data, int device, bool sending) {
  MutexLock lock(mutex_);
  auto place = PlaceOf(data);
  if (!place.ok()) return place.status();
  place->sending = sending;
  if (static_cast<size_t>(device) < numa_nodes_.size()) place->numa_node = numa_nodes_[static_cast<size_t>(device)];
  for (const auto& pool : pools_) {
    if (pool->place() == *place) return pool.get();
  }
  auto pool = GpuPool::Open(driver_, &patience_, *place, slot_bytes_, slots_);
  if (!pool.ok()) return pool.status();
  TCPX_INFO("GPU %d: %d slots of %d bytes pinned for %s, NUMA node %d", place->device, slots_, slot_bytes_,
            place->direction(), place->numa_node);
  pools_.push_back(*std::move(pool));
  return pools_.back().get();
}

absl::StatusOr<GpuWriter*> GpuHub::WriterFor(const void* data, int device) {
  auto pool = PoolFor(data, device, false);
  if (!pool.ok()) return pool.status();
  MutexLock lock(mutex_);
  for (const auto& writer : writers_) {
    if (writer->context() == (*pool)->place().context && !writer->failed()) return writer.get();
  }
  auto writer = GpuWriter::Open(*pool, LoadGdrCopy());
  if (!writer.ok()) return writer.status();
  writers_.push_back(*std::move(writer));
  return writers_.back().get();
}

std::unique_ptr<GdrCopy> GpuHub::LoadGdrCopy() const {
  if (!uses_gdr_) return nullptr;
  auto gdr = GdrCopy::Load();
  if (gdr.ok()) return *std::move(gdr);
  TCPX_WARN("TCPX_RMA_GDRCOPY has no effect, copy engines write to GPU memory: %s", gdr.status().message());
  return nullptr;
}

bool GpuHub::KnowsAsHost(const void* data) const { return MemoryTypeOf(driver_->api(), data) == kCuMemoryHost; }

absl::Status GpuHub::CheckHost(const void* data) const {
  const GpuApi& api = driver_->api();
  unsigned managed = 0;
  // Memory that the driver does not know is the host's.
  if (data == nullptr || MemoryTypeOf(api, data) != kCuMemoryDevice) return absl::OkStatus();
  if (api.pointer_get_attribute(&managed, kCuPointerIsManaged, CuAddressOf(data)) == kCuSuccess && managed != 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("regMr: %p was given as host memory, but the CUDA driver calls it GPU memory", data));
}

}  // namespace tcpx
