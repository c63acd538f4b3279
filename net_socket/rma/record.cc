#include "net_socket/rma/record.h"

#include <cstring>

#include "net_socket/message/fields.h"

namespace tcpx {
namespace {

constexpr uint8_t kFollows = 1;
constexpr uint8_t kSignal = 2;
constexpr uint8_t kStrong = 4;
constexpr uint8_t kAllFlags = kFollows | kSignal | kStrong;

// Bytes of a payload in a batch, up to where the next record begins.
size_t Padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

}  // namespace

size_t RmaRecord::Space() const { return kRmaRecordBytes + (has_payload() && !follows ? Padded(bytes) : 0); }

void WriteRmaRecord(const RmaRecord& record, const char* payload, char* to) {
  uint8_t flags = record.follows ? kFollows : 0;
  if (record.has_signal) flags |= kSignal;
  if (record.strong) flags |= kStrong;
  PutFields(to, record.kind, flags, uint16_t{0}, record.context, record.region, record.signal_region, record.offset,
            record.bytes, record.signal_offset, record.signal_add, record.token);
  const size_t in_batch = record.Space() - kRmaRecordBytes;
  if (in_batch == 0) return;
  std::memcpy(to + kRmaRecordBytes, payload, record.bytes);
  std::memset(to + kRmaRecordBytes + record.bytes, 0, in_batch - record.bytes);
}

const char* ReadRmaRecord(absl::string_view* batch, RmaRecord* record, absl::string_view* payload) {
  if (batch->size() < kRmaRecordBytes) return "a record is cut off";
  const char* const from = batch->data();
  const auto kind = GetNumber<uint8_t>(from);
  const auto flags = GetNumber<uint8_t>(from + 1);
  if (kind < static_cast<uint8_t>(RmaKind::kHello) || kind > static_cast<uint8_t>(RmaKind::kBye) ||
      (flags & ~kAllFlags) != 0 || GetNumber<uint16_t>(from + 2) != 0) {
    return "a record of an unknown kind";
  }
  record->kind = static_cast<RmaKind>(kind);
  if ((flags & (kSignal | kStrong)) != 0 && kind != static_cast<uint8_t>(RmaKind::kPut)) {
    return "a signal that is not a put's";
  }
  record->follows = (flags & kFollows) != 0;
  record->has_signal = (flags & kSignal) != 0;
  record->strong = (flags & kStrong) != 0;
  GetFields(from + 4, &record->context, &record->region, &record->signal_region, &record->offset, &record->bytes,
            &record->signal_offset, &record->signal_add, &record->token);
  batch->remove_prefix(kRmaRecordBytes);
  *payload = absl::string_view();
  if (record->follows && (!record->has_payload() || record->bytes == 0)) return "a payload that can't follow";
  if (record->bytes > kRmaBytesMax && record->kind != RmaKind::kHello) return "a transfer of more than 1 GiB";
  if (!record->has_payload() || record->follows) return nullptr;
  const size_t taken = Padded(record->bytes);
  if (taken > batch->size()) return "a payload is cut off";
  *payload = batch->substr(0, record->bytes);
  batch->remove_prefix(taken);
  return nullptr;
}

}  // namespace tcpx
