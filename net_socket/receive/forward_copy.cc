#include "net_socket/receive/forward_copy.h"

#include <cstdint>
#include <cstring>

namespace tcpx {
namespace {

// One store of sizeof(T) bytes. x86-64 keeps stores in program order (Intel SDM 3A, 8.2.2); the compiler barrier keeps
// the compiler from merging or moving them.
template <typename T>
inline void Store(char* to, const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  std::memcpy(to, &value, sizeof(value));
  __asm__ __volatile__("" ::: "memory");
}

typedef long long Vector16 __attribute__((vector_size(16), aligned(1)));

inline void Store16(char* to, const char* from) {
  const Vector16 value = *reinterpret_cast<const Vector16*>(from);
  *reinterpret_cast<Vector16*>(to) = value;
  __asm__ __volatile__("" ::: "memory");
}

}  // namespace

void ForwardCopy(char* to, const char* from, size_t bytes) {
  // Up to an 8-byte boundary of the destination, so that each aligned word of an LL line is stored whole.
  while (bytes > 0 && (reinterpret_cast<uintptr_t>(to) & 7) != 0) {
    Store<uint8_t>(to++, from++);
    --bytes;
  }
  if (bytes >= 8 && (reinterpret_cast<uintptr_t>(to) & 15) != 0) {
    Store<uint64_t>(to, from);
    to += 8, from += 8, bytes -= 8;
  }
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
    Store16(to, from);
    Store16(to + 16, from + 16);
    Store16(to + 32, from + 32);
    Store16(to + 48, from + 48);
  }
  for (; bytes >= 8; to += 8, from += 8, bytes -= 8) Store<uint64_t>(to, from);
  for (; bytes > 0; --bytes) Store<uint8_t>(to++, from++);
}

}  // namespace tcpx
