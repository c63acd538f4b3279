#include "common/payload/guard.h"

#include <cstring>

namespace tcpx {

void FillGuard(void* data, size_t bytes) { std::memset(data, kGuardByte, bytes); }

size_t VerifyGuard(const void* data, size_t bytes) {
  const uint8_t* byte = static_cast<const uint8_t*>(data);
  // Fast check that nothing was touched: each byte equals the one before it.
  if (bytes == 0 || (byte[0] == kGuardByte && std::memcmp(byte, byte + 1, bytes - 1) == 0)) return kNoDifference;
  size_t at = 0;
  while (byte[at] == kGuardByte) ++at;
  return at;
}

}  // namespace tcpx
