#include "net_socket/receive/forward_copy.h"

#include <atomic>
#include <cstdint>
#include <cstring>

namespace tcpx {
namespace {

// x86-64 keeps stores in program order (Intel SDM 3A, 8.2.2): there only the compiler has to be bound. aarch64 keeps
// none, and needs a barrier before each word that may be a flag.
#if defined(__x86_64__)
constexpr bool kStoresInOrder = true;
#else
constexpr bool kStoresInOrder = false;
#endif

// No merging, no moving, no call of memcpy.
inline void BindCompiler() { __asm__ __volatile__("" ::: "memory"); }

// A reader that sees a store after this one sees those before it. The barrier reaches the outer shareable domain,
// because the reader is a GPU on PCIe: Linux uses it between writes that a device reads (dma_wmb).
inline void KeepOrder() {
#if defined(__aarch64__)
  __asm__ __volatile__("dmb oshst" ::: "memory");
#else
  if (!kStoresInOrder) std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// True exactly where a barrier must come first: this may be an LL128 flag, the last 8 bytes of a line. NCCL's buffers
// begin at a line's boundary. LL's flags are in the word that they are about.
inline bool NeedsOrder(const char* to) { return !kStoresInOrder && (reinterpret_cast<uintptr_t>(to) & 127) == 120; }

// One store of sizeof(T) bytes.
template <typename T>
inline void Store(char* to, const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  std::memcpy(to, &value, sizeof(value));
  BindCompiler();
}

typedef long long Vector16 __attribute__((vector_size(16), aligned(1)));

inline void Store16(char* to, const char* from) {
  const Vector16 value = *reinterpret_cast<const Vector16*>(from);
  *reinterpret_cast<Vector16*>(to) = value;
  BindCompiler();
}

// `to` is at a boundary of 16 bytes.
inline void StoreUnit(char* to, const char* from) {
  if (NeedsOrder(to + 8)) {
    Store<uint64_t>(to, from);
    KeepOrder();
    Store<uint64_t>(to + 8, from + 8);
  } else {
    Store16(to, from);
  }
}

}  // namespace

void ForwardCopy(char* to, const char* from, size_t bytes) {
  // Up to an 8-byte boundary of the destination, so that each aligned word of an LL line is stored whole. A word that
  // comes in parts may have its flag in any of them.
  while (bytes > 0 && (reinterpret_cast<uintptr_t>(to) & 7) != 0) {
    KeepOrder();
    Store<uint8_t>(to++, from++);
    --bytes;
  }
  if (bytes >= 8 && (reinterpret_cast<uintptr_t>(to) & 15) != 0) {
    if (NeedsOrder(to)) KeepOrder();
    Store<uint64_t>(to, from);
    to += 8, from += 8, bytes -= 8;
  }
  for (; bytes >= 64; to += 64, from += 64, bytes -= 64) {
    StoreUnit(to, from);
    StoreUnit(to + 16, from + 16);
    StoreUnit(to + 32, from + 32);
    StoreUnit(to + 48, from + 48);
  }
  for (; bytes >= 8; to += 8, from += 8, bytes -= 8) {
    if (NeedsOrder(to)) KeepOrder();
    Store<uint64_t>(to, from);
  }
  for (; bytes > 0; --bytes) {
    KeepOrder();
    Store<uint8_t>(to++, from++);
  }
}

}  // namespace tcpx
