// health_waiters.h: the dials that need a health socket up: one of them dials it for all.
//
// Threads: the reactor.
// Lifetime: borrows the socket; a waiter gives up before it goes. Errors: none.
#pragma once

#include <deque>

#include "net_socket/health/health_socket.h"

namespace tcpx {

class HealthWaiters {
 public:
  class Waiter {
   public:
    // It is this waiter's turn to dial the socket.
    virtual void DialHealthInLoop() = 0;
    virtual void HealthUpInLoop() = 0;

   protected:
    ~Waiter() = default;
  };

  explicit HealthWaiters(const HealthSocket* socket) : socket_(socket) {}

  // The socket is up at once, or one waiter dials it and the others wait.
  void AwaitInLoop(Waiter* waiter);
  void GiveUpInLoop(Waiter* waiter);
  // The socket is up.
  void NotifyInLoop();
  // It is not, and nobody is known to dial it.
  void DialInLoop();

 private:
  const HealthSocket* const socket_;
  Waiter* dialler_ = nullptr;  // who dials it now
  std::deque<Waiter*> waiters_;
};

}  // namespace tcpx
