// thread.h: starts a thread, or says why the kernel gives none.
//
// Purpose: std::thread throws where the kernel refuses (RLIMIT_NPROC, pids.max of a container), through NCCL and into
//          the application's end. Every thread of ours starts here instead.
// Threads: any. The new thread blocks the application's signals (SignalsBlocked).
// Errors:  kResourceExhausted, with advice, for EAGAIN (pthread_create(3)); the local kernel's otherwise.
#pragma once

#include <signal.h>

#include <functional>
#include <thread>

#include "absl/status/statusor.h"

namespace tcpx {

// Keeps the application's signals away from our threads.
// Purpose: a thread started while one of these lives inherits its mask, so the application's handlers run in its own
//          threads; but for the signals that tell of a fault of the thread itself, which a crash handler must see.
// Threads: created and destroyed by one thread.
// Errors:  none (pthread_sigmask(3) has no cause to fail here).
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// `what` names it in an error: "the housekeeping thread".
absl::StatusOr<std::thread> StartThread(const char* what, std::function<void()> function);

}  // namespace tcpx
