// host_mark.h: where a handle says on which host, and in which network namespace, its listener is.
//
// Purpose: after what wire.h writes and before connect's key, so that builds without it are none the wiser: they say 0.
// Threads: pure. Units: the value is HostMark's (common/this_host.h); 0: unknown.
// Errors:  none; any value may come in.
#pragma once

#include <cstdint>
#include <cstring>

#include "net_socket/message/wire.h"

namespace tcpx {

inline constexpr size_t kHandleHostMarkOffset = 104;
static_assert(kHandleUsedBytes <= kHandleHostMarkOffset);
static_assert(kHandleHostMarkOffset + sizeof(uint64_t) <= kHandleKeyOffset);

inline void WriteHostMark(uint64_t mark, char* handle) {
  std::memcpy(handle + kHandleHostMarkOffset, &mark, sizeof(mark));
}

inline uint64_t ReadHostMark(const char* handle) {
  uint64_t mark;
  std::memcpy(&mark, handle + kHandleHostMarkOffset, sizeof(mark));
  return mark;
}

}  // namespace tcpx
