#include "common/thread.h"

#include <errno.h>
#include <signal.h>

#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace tcpx {
namespace {

// Keeps the application's signals away from our threads: a thread started while this lives inherits its mask, so the
// application's handlers run in its own threads; but for the signals that tell of a fault of the thread itself, which a
// crash handler must see.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

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
