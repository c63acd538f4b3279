#include "net_socket/rma/region_table.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace tcpx {

std::string RangeText(uint64_t bytes, uint64_t offset, RmaHandle handle, const RmaRegion* region) {
  if (region == nullptr) return absl::StrFormat("handle %u, which no registration gave", handle);
  return absl::StrFormat("%u bytes at %u of region %u, which has %u", bytes, offset, region->id, region->bytes);
}

RmaHandle RmaRegionTable::Add(void* data, size_t bytes, MemoryType type, RmaUse use) {
  const uint32_t id = next_++;
  regions_[RmaHandle{id} + 1] = {id, static_cast<char*>(data), bytes, type, use};
  return RmaHandle{id} + 1;
}

std::optional<RmaRegion> RmaRegionTable::Take(RmaHandle handle) {
  const auto found = regions_.find(handle);
  if (found == regions_.end()) return std::nullopt;
  const RmaRegion taken = found->second;
  regions_.erase(found);
  return taken;
}

const RmaRegion* RmaRegionTable::Find(RmaHandle handle) const {
  const auto found = regions_.find(handle);
  return found == regions_.end() ? nullptr : &found->second;
}

bool RmaRegionTable::has_windows() const {
  return std::any_of(regions_.begin(), regions_.end(),
                     [](const auto& entry) { return entry.second.use == RmaUse::kWindow; });
}

}  // namespace tcpx
