#include "common/random.h"

#include <errno.h>
#include <sys/random.h>

#include "common/status.h"

namespace tcpx {

absl::Status FillRandom(void* data, size_t bytes) {
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
