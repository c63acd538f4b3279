// record.h: what one rank of a group asks of another: the records in the messages of their connection.
//
// Purpose: a batch is a message of records. A short payload is in the batch, after its record. A long one is a message
//          of its own: one message for each record with `follows`, in their order, right after the batch.
// Threads: pure. Units: bytes; little endian; a record begins at a multiple of 8.
// Errors:  Read tells what is wrong in words. It knows the format only: regions are checked by region_table.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace tcpx {

enum class RmaKind : uint8_t {
  kHello = 1,   // the first: `token` is the sender's rank, `bytes` the ranks of its group
  kPut = 2,     // bytes at `offset` of `region`; without bytes a signal only
  kGet = 3,     // asks for bytes at `offset` of `region`
  kGotten = 4,  // answers the get of `token`
  kBye = 5,     // the last: the sender has closed its group; `bytes` is 0 if it still had windows, as after an abort
};

struct RmaRecord {
  RmaKind kind = RmaKind::kPut;
  bool follows = false;     // the payload is a message of its own
  bool has_signal = false;  // of a put
  bool strong = false;
  uint32_t context = 0;
  uint32_t region = 0;
  uint32_t signal_region = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t signal_offset = 0;
  uint64_t signal_add = 0;
  uint64_t token = 0;

  bool has_payload() const { return kind == RmaKind::kPut || kind == RmaKind::kGotten; }
  // What it takes in a batch.
  size_t Space() const;
};

inline constexpr size_t kRmaRecordBytes = 56;
// Most bytes of a batch: an express message, as long as the user changes nothing.
inline constexpr size_t kRmaBatchBytes = 64 << 10;
// Most bytes of an operation: NCCL cuts longer ones.
inline constexpr uint64_t kRmaBytesMax = 1 << 30;
// Longer payloads follow the batch as messages of their own.
inline constexpr size_t kRmaInlineBytes = 16 << 10;
// Shorter ones wait for each other: the kernel takes 256 KiB in 51 us, but 1 MiB in 137 (docs/experiments.md).
inline constexpr uint64_t kRmaAloneBytes = 1 << 20;

// Writes Space() bytes at `to`, a payload that does not follow is copied from `payload`.
void WriteRmaRecord(const RmaRecord& record, const char* payload, char* to);
// Takes the first record from `batch`; `payload` points into `batch`. Null, or what is wrong.
const char* ReadRmaRecord(absl::string_view* batch, RmaRecord* record, absl::string_view* payload);

}  // namespace tcpx
