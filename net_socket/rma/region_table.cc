#include "net_socket/rma/region_table.h"

namespace tcpx {

RmaHandle RmaRegionTable::Add(void* data, size_t bytes, MemoryType type) {
  const uint32_t id = next_++;
  regions_[RmaHandle{id} + 1] = {id, static_cast<char*>(data), bytes, type};
  return RmaHandle{id} + 1;
}

const RmaRegion* RmaRegionTable::Find(RmaHandle handle) const {
  const auto found = regions_.find(handle);
  return found == regions_.end() ? nullptr : &found->second;
}

}  // namespace tcpx
