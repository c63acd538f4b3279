// checked_operation.h: an operation whose regions are known here.
//
// Purpose: looks up each handle once, and checks what can be checked on this rank. Sizes of the peer's regions are the
//          peer's to check.
// Threads: pure. Lifetime: valid until the table of regions changes. Units: bytes.
// Errors:  kFailedPrecondition in words; no byte outside of a region is touched.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/rma_api.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/region_table.h"

namespace tcpx {

class CheckedOperation {
 public:
  static absl::StatusOr<CheckedOperation> Check(const RmaRegionTable& regions, const RmaOperation& operation);

  // Null exactly where there are no bytes.
  const RmaRegion* local() const { return local_; }
  char* data() const { return local_ == nullptr ? nullptr : local_->data + operation_->local_offset; }
  // The record that asks the peer for it; the caller sets `follows`, and the token of a get.
  RmaRecord Record(uint32_t context) const;
  // The peer is this rank.
  struct Own {
    char* to = nullptr;
    const char* from = nullptr;
    size_t bytes = 0;
    bool on_gpu = false;                // either of them
    const RmaRegion* signal = nullptr;  // null: none
    char* word = nullptr;               // there
    uint64_t add = 0;
  };
  absl::StatusOr<Own> Here() const;

 private:
  explicit CheckedOperation(const RmaOperation& operation) : operation_(&operation) {}

  const RmaOperation* operation_;
  const RmaRegion* local_ = nullptr;
  const RmaRegion* remote_ = nullptr;
  const RmaRegion* signal_ = nullptr;
};

}  // namespace tcpx
