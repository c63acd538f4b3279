// guard.h: bytes around a buffer that show when something was written where nothing may be.
//
// Threads: any; pure.
// Units:   bytes.
// Errors:  VerifyGuard returns the first difference, or kNoDifference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tcpx {

inline constexpr size_t kNoDifference = ~size_t{0};
inline constexpr uint8_t kGuardByte = 0xC9;
// Bytes checked before a receive buffer, and after its capacity.
inline constexpr size_t kGuardBytes = 64;

inline void FillGuard(void* data, size_t bytes) { std::memset(data, kGuardByte, bytes); }
// Offset of the first byte that FillGuard would not have written.
inline size_t VerifyGuard(const void* data, size_t bytes) {
  const uint8_t* byte = static_cast<const uint8_t*>(data);
  // Fast check that nothing was touched: each byte equals the one before it.
  if (bytes == 0 || (byte[0] == kGuardByte && std::memcmp(byte, byte + 1, bytes - 1) == 0)) return kNoDifference;
  size_t at = 0;
  while (byte[at] == kGuardByte) ++at;
  return at;
}

}  // namespace tcpx
