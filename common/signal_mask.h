// signal_mask.h: keeps the application's signals away from our threads.
//
// Purpose: a thread started while one of these lives inherits its mask, so the application's handlers run in its own
//          threads; but for the signals that tell of a fault of the thread itself, which a crash handler must see.
// Threads: created and destroyed by one thread.
// Errors:  none (pthread_sigmask(3) has no cause to fail here).
#pragma once

#include <signal.h>

namespace tcpx {

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

}  // namespace tcpx
