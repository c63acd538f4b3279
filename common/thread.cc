#include "common/thread.h"

#include <errno.h>

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace tcpx {

absl::StatusOr<std::thread> StartThread(const char* what, std::function<void()> function) {
  const SignalsBlocked blocked;
  try {
    return std::thread(std::move(function));
  } catch (const std::system_error& error) {
    const int err = error.code().value();
    if (err != EAGAIN) return ErrnoStatus(err, what);
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " can't be started: ", ErrnoText(err),
                     "; raise the limit of processes and threads (ulimit -u, or the container's pids limit: "
                     "podPidsLimit in Kubernetes)"));
  }
}

}  // namespace tcpx
