// guard.h: bytes around a buffer that show when something was written where nothing may be.
//
// Threads: any; pure.
// Units:   bytes.
// Errors:  VerifyGuard returns the first difference, or kNoDifference.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tcpx {

inline constexpr size_t kNoDifference = ~size_t{0};
inline constexpr uint8_t kGuardByte = 0xC9;
// Bytes checked before a receive buffer, and after its capacity.
inline constexpr size_t kGuardBytes = 64;

void FillGuard(void* data, size_t bytes);
// Offset of the first byte that FillGuard would not have written.
size_t VerifyGuard(const void* data, size_t bytes);

}  // namespace tcpx
