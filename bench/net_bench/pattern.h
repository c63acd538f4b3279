// pattern.h: what --check sends, and how it is verified.
//
// Purpose: contents that depend on seed, connection, direction, message and position, so that a byte that is lost,
//          doubled, stale or swapped shows. A byte too many shows by the guards around receive buffers (guard.h).
// Threads: any; pure.
// Units:   bytes.
// Errors:  VerifyPattern returns the first difference, or kNoDifference.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/payload/guard.h"

namespace tcpx {
namespace bench {

struct MessageIdentity {
  uint64_t seed = 0;
  uint32_t connection = 0;
  uint32_t sender = 0;  // rank
  uint64_t message = 0;
};

void FillPattern(const MessageIdentity& identity, uint8_t* data, size_t bytes);
// Offset of the first byte that FillPattern would not have written.
size_t VerifyPattern(const MessageIdentity& identity, const uint8_t* data, size_t bytes);
// What FillPattern writes at `offset`.
uint8_t PatternByte(const MessageIdentity& identity, size_t offset);

}  // namespace bench
}  // namespace tcpx
