// comm_regions.h: which regions of a group one connection knows.
//
// Purpose: a region is registered with a connection at its first use there, and its end waits for all of them.
// Threads: one at a time. Lifetime: borrows the plugin and the comm.
// Errors:  as TransferApi::RegisterMemory.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "nccl/plugin_api.h"
#include "net_socket/rma/region_table.h"

namespace tcpx {

class CommRegions {
 public:
  explicit CommRegions(TransferApi* net) : net_(net) {}

  absl::StatusOr<MemoryRegion*> For(Comm* comm, const RmaRegion& region) {
    MemoryRegion*& known = regions_[region.id];
    if (known != nullptr) return known;
    auto made = net_->RegisterMemory(comm, region.data, region.bytes, region.type);
    if (made.ok()) known = *made;
    return made;
  }
  // Afterwards neither the connection nor the kernel touches it.
  void Forget(Comm* comm, uint32_t id) {
    const auto known = regions_.find(id);
    if (known == regions_.end()) return;
    net_->DeregisterMemory(comm, known->second);
    regions_.erase(known);
  }

 private:
  TransferApi* const net_;
  absl::flat_hash_map<uint32_t, MemoryRegion*> regions_;  // by RmaRegion::id
};

}  // namespace tcpx
