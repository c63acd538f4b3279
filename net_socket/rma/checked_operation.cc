#include "net_socket/rma/checked_operation.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace tcpx {
namespace {

absl::Status Refused(const std::string& text) {
  return absl::FailedPreconditionError(absl::StrCat("one-sided transfer refused: ", text));
}

}  // namespace

absl::StatusOr<CheckedOperation> CheckedOperation::Check(const RmaRegionTable& regions, const RmaOperation& operation) {
  CheckedOperation checked(operation);
  if (operation.bytes > kRmaBytesMax) return Refused(absl::StrCat(operation.bytes, " bytes, of at most 1 GiB"));
  if (operation.bytes > 0) {
    checked.local_ = regions.Find(operation.local);
    if (checked.local_ == nullptr || !checked.local_->Contains(operation.local_offset, operation.bytes)) {
      return Refused(RangeText(operation.bytes, operation.local_offset, operation.local, checked.local_));
    }
    checked.remote_ = regions.Find(operation.remote);
    if (checked.remote_ == nullptr) return Refused("there " + RangeText(operation.bytes, 0, operation.remote, nullptr));
  }
  if (operation.has_signal) {
    checked.signal_ = regions.Find(operation.signal);
    if (checked.signal_ == nullptr) return Refused("a signal at " + RangeText(0, 0, operation.signal, nullptr));
  }
  return checked;
}

RmaRecord CheckedOperation::Record(uint32_t context) const {
  RmaRecord record;
  record.kind = operation_->get ? RmaKind::kGet : RmaKind::kPut;
  record.context = context;
  record.bytes = operation_->bytes;
  if (remote_ != nullptr) {
    record.region = remote_->id;
    record.offset = operation_->remote_offset;
  }
  if (signal_ != nullptr) {
    record.has_signal = true;
    record.strong = operation_->strong;
    record.signal_region = signal_->id;
    record.signal_offset = operation_->signal_offset;
    record.signal_add = operation_->signal_add;
  }
  return record;
}

absl::StatusOr<CheckedOperation::Own> CheckedOperation::Here() const {
  Own own;
  if (remote_ != nullptr) {
    if (!remote_->Contains(operation_->remote_offset, operation_->bytes)) {
      return Refused(RangeText(operation_->bytes, operation_->remote_offset, operation_->remote, remote_));
    }
    char* const remote = remote_->data + operation_->remote_offset;
    own.to = operation_->get ? data() : remote;
    own.from = operation_->get ? remote : data();
    own.bytes = operation_->bytes;
    own.on_gpu = local_->on_gpu() || remote_->on_gpu();
  }
  if (signal_ == nullptr) return own;
  if (!signal_->ContainsWord(operation_->signal_offset)) {
    return Refused("a signal of " +
                   RangeText(sizeof(uint64_t), operation_->signal_offset, operation_->signal, signal_));
  }
  own.signal = signal_;
  own.word = signal_->data + operation_->signal_offset;
  own.add = operation_->signal_add;
  return own;
}

}  // namespace tcpx
