#include "net_socket/plugin/call_guard.h"

#include <unistd.h>

#include <string>

#include "common/clock.h"
#include "common/log.h"

namespace tcpx {

// From one look at the calls that are inside to the next. A guess.
constexpr unsigned kNapUs = 50;

// Either End sees that it is inside, or it sees the end.
bool CallGuard::Enter() {
  if (forked() || ended_.load()) return false;
  inside_.fetch_add(1);
  if (!ended_.load()) return true;
  inside_.fetch_sub(1);
  return false;
}

bool CallGuard::End(int64_t patience_ns) {
  ended_.store(true);
  for (const int64_t until_ns = MonotonicNanos() + patience_ns; inside_.load() != 0; usleep(kNapUs)) {
    if (MonotonicNanos() > until_ns) return false;
  }
  return true;
}

absl::Status CallGuard::Refusal() const {
  if (!forked()) return absl::UnknownError("tcpx is being unloaded");
  const absl::Status refusal = absl::UnknownError(
      "tcpx can't be used in a forked child: start the process anew (exec, or the spawn start method)");
  if (!warned_.exchange(true)) TCPX_WARN("%s", refusal.message());
  return refusal;
}

}  // namespace tcpx
