#include "net_socket/plugin/fork_guard.h"

#include <string>

#include "common/log.h"

namespace tcpx {

absl::Status ForkGuard::Refusal() const {
  const absl::Status refusal = absl::UnknownError(
      "tcpx can't be used in a forked child: start the process anew (exec, or the spawn start method)");
  if (!told_.exchange(true)) TCPX_WARN("%s", std::string(refusal.message()));
  return refusal;
}

}  // namespace tcpx
