// checked_operation.h: an operation whose regions are known here.
//
// Purpose: looks up each handle once, and checks what can be checked on this rank. Sizes of the peer's regions are the
//          peer's to check.
// Threads: pure. Lifetime: valid until the table of regions changes. Units: bytes.
// Errors:  kFailedPrecondition in words; no byte outside of a region is touched.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nccl/rma_api.h"
#include "net_socket/rma/record.h"
#include "net_socket/rma/region_table.h"

namespace tcpx {

struct CheckedOperation {
  RmaRecord record;                  // asks the peer for it; the caller sets `follows`, and the token of a get
  const RmaRegion* local = nullptr;  // null exactly where there are no bytes, as `remote`
  char* data = nullptr;              // in `local`
  const RmaRegion* remote = nullptr;
  const RmaRegion* signal = nullptr;  // null: none
};

absl::StatusOr<CheckedOperation> CheckOperation(const RmaRegionTable& regions, const RmaOperation& operation,
                                                uint32_t context);
// Where the peer is this rank: its side fits, too.
absl::Status CheckHere(const CheckedOperation& operation);

// For an error: what was asked of `region`, which is null where the handle names none.
std::string RangeText(uint64_t bytes, uint64_t offset, RmaHandle handle, const RmaRegion* region);

}  // namespace tcpx
