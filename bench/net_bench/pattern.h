// pattern.h: what --check sends, and how it is verified.
//
// Purpose: contents that depend on seed, connection, direction, message and position, so that a byte that is lost,
//          doubled, stale or swapped shows; guard bytes around receive buffers, so that a byte too many shows.
//
// Threads: any; pure.
// Units:   bytes.
// Errors:  the Verify functions return the first difference, or kNoDifference.
#ifndef TCPX_BENCH_NET_BENCH_PATTERN_H_
#define TCPX_BENCH_NET_BENCH_PATTERN_H_

#include <cstddef>
#include <cstdint>

namespace tcpx {
namespace bench {

inline constexpr size_t kNoDifference = ~size_t{0};
inline constexpr uint8_t kGuardByte = 0xC9;

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

void FillGuard(uint8_t* data, size_t bytes);
size_t VerifyGuard(const uint8_t* data, size_t bytes);

}  // namespace bench
}  // namespace tcpx

#endif  // TCPX_BENCH_NET_BENCH_PATTERN_H_
