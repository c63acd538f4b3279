// gpu_hub.h: finds the pool for a piece of GPU memory, and says what memory a pointer names.
//
// Purpose: all that the process stages shares a few pools: one per GPU context, NUMA node of the network card, and
//          direction. A pool is opened with the first registration that needs it: at set-up, never while a message is
//          moved.
// Threads: any. Lifetime: pools live as long as the hub, which outlives the comms.
// Errors:  PoolFor: kInvalidArgument for a pointer that is not GPU memory, with the driver's text, and as
//          GpuPool::Open.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "common/params.h"
#include "net_socket/gpu/gpu_driver.h"
#include "net_socket/gpu/gpu_pool.h"
#include "net_socket/gpu/gpu_writer.h"

namespace tcpx {

class GpuHub {
 public:
  GpuHub(const GpuDriver* driver, const Options& options);
  ~GpuHub();

  // By device of NCCL's: the NUMA node of its network card.
  void SetNumaNodes(std::vector<int> nodes);
  absl::StatusOr<GpuPool*> PoolFor(const void* data, int device, bool sending);
  // One per GPU context: what several groups write into the same memory has one order.
  absl::StatusOr<GpuWriter*> WriterFor(const void* data, int device);
  // An error exactly when the driver says that the host can't read or write `data`.
  absl::Status CheckHost(const void* data) const;
  // The CUDA driver has allocated or registered it as host memory.
  bool KnowsAsHost(const void* data) const;

 private:
  // The context that `data` was allocated in, and its device.
  absl::StatusOr<GpuPlace> PlaceOf(const void* data) TCPX_REQUIRES(mutex_);
  // Null: not asked for, or not there.
  std::unique_ptr<GdrCopy> LoadGdrCopy() const;
  absl::StatusOr<CuContext> Primary(int gpu) TCPX_REQUIRES(mutex_);

  const GpuDriver* const driver_;
  const size_t slot_bytes_;
  const size_t slots_;
  const bool uses_gdr_;
  GpuPatience patience_;

  Mutex mutex_;
  std::vector<int> numa_nodes_ TCPX_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<GpuPool>> pools_ TCPX_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<GpuWriter>> writers_ TCPX_GUARDED_BY(mutex_);
  std::map<int, CuContext> retained_ TCPX_GUARDED_BY(mutex_);  // primary contexts
};

}  // namespace tcpx
