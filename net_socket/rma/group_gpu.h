// group_gpu.h: how a group reaches the memory of its GPU.
//
// Purpose: makes ready what a region in GPU memory needs, so that nothing is pinned or created while NCCL's kernels
//          wait for a transfer; carries out what a rank asks of itself once such memory is known. Without a CUDA driver
//          NCCL's GPU memory is the host's.
// Threads: under the group's mutex, which Await gives up while it waits.
// Lifetime: borrows the hub, and a request until it is finished.
// Errors:  as GpuHub and GpuWriter; kInvalidArgument for the memory of a second GPU.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/mutex.h"
#include "nccl/rma_api.h"
#include "net_socket/rma/region_table.h"
#include "net_socket/rma/request.h"

namespace tcpx {

class GpuHub;
class GpuPool;
class GpuWriter;

class GroupGpu {
 public:
  // `hub` may be null. `device`: NCCL's; `peers`: how many connections of each direction there may be.
  GroupGpu(GpuHub* hub, int device, size_t peers) : hub_(hub), device_(device), slots_(std::min(peers, kReservedMax)) {}
  ~GroupGpu();

  // The type that memory of `type` is registered as.
  absl::StatusOr<MemoryType> Prepare(const char* data, size_t bytes, MemoryType type);
  // Null: no region is in GPU memory.
  GpuWriter* writer() const { return writer_; }
  // What this rank asks of itself.
  absl::Status Do(const CheckedOperation& operation, RmaRequest* request);
  // True in *moved where the stream has carried something out.
  absl::Status Poll(bool* moved);
  // Nothing that this rank asked of itself is under way.
  bool idle() const { return own_.empty(); }
  // Returns once nothing that was given before touches memory, or with an error: the GPU is stuck. What was given
  // before borrows no request then. `mutex`: the group's.
  absl::Status Await(Mutex& mutex) TCPX_REQUIRES(mutex);
  // The region ends. After Await.
  void Forget(const RmaRegion& region);

 private:
  struct Own {
    uint64_t number;
    RmaRequest* request;
    char* host_word;  // of its signal, where the host has that; else null
    uint64_t add;
  };
  // Slots reserved for each direction. Connections beyond this number pin a slot at first use.
  static constexpr size_t kReservedMax = 64;

  // Slots, in the pools of the GPU that `data` is on.
  absl::Status Reserve(const char* data);
  void FinishReached();

  GpuHub* const hub_;
  const int device_;
  const size_t slots_;  // reserved for each direction
  GpuWriter* writer_ = nullptr;
  std::vector<GpuPool*> reserved_;  // in which this group has reserved slots
  std::deque<Own> own_;             // oldest first
  uint64_t steps_ = 0;              // that the stream had carried out at the latest poll
};

}  // namespace tcpx
