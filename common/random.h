// random.h: unpredictable bytes, for tickets and connection ids.
//
// Threads: any. Blocks only while the kernel's pool is not yet initialised (early boot; getrandom(2)).
// Units:   bytes.
// Errors:  the local kernel's: kUnknown with the errno text.
#pragma once

#include <errno.h>
#include <sys/random.h>

#include <cstddef>

#include "absl/status/status.h"
#include "common/status.h"

namespace tcpx {

inline absl::Status FillRandom(void* data, size_t bytes) {
  char* next = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = getrandom(next, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoStatus(errno, "getrandom");
    next += got;
    bytes -= static_cast<size_t>(got);
  }
  return absl::OkStatus();
}

}  // namespace tcpx
