// receive_staging.h: payload that is copied into GPU memory.
//
// Purpose: lanes fill pinned slots; the calling thread has each copied to its place in GPU memory, and counts it as
//          landed when the copy's event is done. What a GPU reads while it arrives (LL, LL128) is copied so that no
//          flag lands before its data.
// Threads: Take and Filled by the thread that moves a lane; all else by the calling thread.
// Errors:  Poll: as GpuDriver::Check.
// Source:  LL and LL128 as NCCL 2.12 to 2.30 lays them out (receive_staging.cc).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "net_socket/gpu/gpu_pool.h"
#include "net_socket/message/posted_receive.h"

namespace tcpx {

class ReceiveStaging final : public PayloadSink {
 public:
  explicit ReceiveStaging(std::unique_ptr<GpuAllowance> slots) : slots_(std::move(slots)) {}

  PayloadPlace* Take(const PayloadPlace& wanted) override;
  void Filled(PayloadPlace* place) override;

  GpuPool& pool() const { return slots_->pool(); }
  bool HasRoom() const { return slots_->HasRoom(); }
  // True exactly when nothing that lanes have filled has still to land.
  bool idle() const { return filled_.load(std::memory_order_acquire) == nullptr && copying_begin_ == copying_end_; }
  // Starts copies out of filled slots, and counts as landed what has been copied.
  absl::Status Poll();
  // The comm has failed and no thread moves its lanes: returns once no copy writes GPU memory. With a GPU that is stuck
  // the slots are lost instead.
  void Abandon();

 private:
  absl::Status StartCopies();
  absl::Status Copy(const GpuSlot& slot);
  absl::Status CopyPlain(CuAddress to, const char* from, size_t bytes);
  absl::Status CopyLines(CuAddress to, const char* from, size_t lines);
  absl::Status CopyStrided(CuAddress to, const char* from, size_t width, size_t lines);

  const std::unique_ptr<GpuAllowance> slots_;
  std::atomic<GpuSlot*> filled_{nullptr};  // newest first
  // Being copied, oldest first, in a ring.
  GpuSlot* copying_[GpuAllowance::kSlots] = {};
  uint64_t copying_begin_ = 0;
  uint64_t copying_end_ = 0;
};

}  // namespace tcpx
