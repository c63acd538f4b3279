#include "net_socket/rma/region_table.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tcpx {
namespace {

absl::Status Refused(const std::string& text) {
  return absl::FailedPreconditionError(absl::StrCat("one-sided transfer refused: ", text));
}

}  // namespace

std::string RangeText(uint64_t bytes, uint64_t offset, RmaHandle handle, const RmaRegion* region) {
  if (region == nullptr) return absl::StrFormat("handle %u, which no registration gave", handle);
  return absl::StrFormat("%u bytes at %u of region %u, which has %u", bytes, offset, region->id, region->bytes);
}

absl::StatusOr<CheckedOperation> CheckOperation(const RmaRegionTable& regions, const RmaOperation& operation,
                                                uint32_t context) {
  CheckedOperation checked;
  RmaRecord& record = checked.record;
  record.kind = operation.get ? RmaKind::kGet : RmaKind::kPut;
  record.context = context;
  record.bytes = operation.bytes;
  if (operation.bytes > kRmaBytesMax) return Refused(absl::StrCat(operation.bytes, " bytes, of at most 1 GiB"));
  if (operation.bytes > 0) {
    checked.local = regions.Find(operation.local);
    if (checked.local == nullptr || !checked.local->Contains(operation.local_offset, operation.bytes)) {
      return Refused(RangeText(operation.bytes, operation.local_offset, operation.local, checked.local));
    }
    checked.data = checked.local->data + operation.local_offset;
    checked.remote = regions.Find(operation.remote);
    if (checked.remote == nullptr) return Refused("there " + RangeText(operation.bytes, 0, operation.remote, nullptr));
    record.region = checked.remote->id;
    record.offset = operation.remote_offset;
  }
  if (operation.has_signal) {
    checked.signal = regions.Find(operation.signal);
    if (checked.signal == nullptr) return Refused("a signal at " + RangeText(0, 0, operation.signal, nullptr));
    record.has_signal = true;
    record.strong = operation.strong;
    record.signal_region = checked.signal->id;
    record.signal_offset = operation.signal_offset;
    record.signal_add = operation.signal_add;
  }
  return checked;
}

absl::Status CheckHere(const CheckedOperation& operation) {
  const RmaRecord& record = operation.record;
  if (operation.remote != nullptr && !operation.remote->Contains(record.offset, record.bytes)) {
    return Refused(RangeText(record.bytes, record.offset, 0, operation.remote));
  }
  if (operation.signal != nullptr && !operation.signal->ContainsWord(record.signal_offset)) {
    return Refused("a signal of " + RangeText(sizeof(uint64_t), record.signal_offset, 0, operation.signal));
  }
  return absl::OkStatus();
}

}  // namespace tcpx
